// SPDX-License-Identifier: Apache-2.0

// Package redis implements the contract of package statestore on Redis 7.0 or later: one server, a primary under
// Sentinels, or a Redis Cluster. Each promise is one Lua script that touches one slot, decides by the server's clock,
// and may be repeated.
//
// # Keys
//
// All keys begin with {prefix:, the channel is prefix:changes. An ACL user needs ~{prefix:* &prefix:changes +@read
// +@write +@scripting +@pubsub +@connection +wait +time +info, in a cluster also +cluster.
//
//	{creel:c}:meta        hash: id, schema, state, pv (newest policy version)
//	{creel:c}:known       hash by member: members reported for a rebuild in progress
//	{creel:c}:mark:<process> number of checks by that process
//	{creel:c}:guard       hash: newest token of each lease; each shard has one too
//	{creel:c}:m e b r l d x   hashes by member: record, epoch, heartbeat, registered,
//	                      load, drain, deregistered
//	{creel:c}:t s h qn q:<leaf> log:<generation>:<leaf>  heartbeats and loads for partial
//	                      reads (scripts.go describes their content)
//	{creel:c}:p           hash by queue: policy;  ph:<queue> list: its history
//	{creel:c}:doc:<class> hash by name: documents;  dh:<class>:<name> list
//	{creel:c}:lease       hash by name;  k:<ring> hash: keys
//	{creel:c}:dt          hash by number: delegation tokens;  de sorted set: their expiry times
//	{creel:c}:ev          stream: events of the federation
//	{creel:c}:dm          hash by id: live daemons;  dn dx sorted sets: their order, their expiry times
//	{creel:17}:a:<block>  hash of up to 64 applications: home, claimed, ends
//	{creel:17}:ah:<home>  sorted set: listing of a home in this shard
//	{creel:17}:ae         sorted set: expiry times of forgotten applications
//	{creel:17}:ap:<block> hash of the same applications: reasons of the choice of home
//	{creel:17}:as:<app>   hash: UAM records by attempt
//	{creel:17}:r rh re    homes of reservations, as a, ah and ae
//
// There are 64 shards. A bucket of 64 applications is below Redis' hash-max-listpack-entries, so Redis stores it as one
// compact block. Health writes {creel:c}:probe, which expires by itself.
//
// # When Redis is ill
//
// A call is repeated, with growing pauses, until its context's deadline, or for MaxWait without one. Then it
// fails with creel.ErrUnavailable and RetryAfter:
//
//	slow, paused      each exchange ends after Timeout and is repeated
//	down, unreachable the client reconnects; random pauses spread callers out
//	read only,        a failover: the client reconnects, to the primary that
//	failing over      the Sentinels or the cluster name
//	loading           the call waits
//	out of memory     claims fail; heartbeats, renewals, ends and sweeps continue,
//	                  and so do all reads
//	disk full         writes fail (MISCONF), reads continue
//	restarted empty   the shards lack the store's identity: claims, moves and the like
//	                  fail and unknown homes are "unavailable", not "not
//	                  found", until Reopen (the routers call it, see
//	                  statestore/rebuild) has written back the homes that the
//	                  ResourceManagers report. Members register again at their
//	                  next heartbeat. A process that starts on an empty store
//	                  cannot detect that the store had data before: with Config.Confirm,
//	                  which all daemons set, it waits for Reopen too, else it treats
//	                  the store as a new one.
//	restored          a backup, or a failover that lost writes: each process counts
//	                  its checks in the store, and finds its count lower than
//	                  before. The store counts as restarted empty then. In a cluster
//	                  only a loss in the slot {creel:c} is detected.
//
// # What a failover may lose
//
// Redis replicates after it has answered. If a primary dies or is cut off, its last acknowledged writes may be missing
// at the next one: usually milliseconds, at most the time until the Sentinels or the cluster replaced it. Versions and
// lease tokens are based on the clock, so they rise nevertheless. If a lease and its fence were lost, a lower token
// cannot pass for the fence.
//
//	setting                       an acknowledged claim is lost if           cost
//	(default)                     the primary dies before it replicated      none
//	Wait=1 (wait=1 in the URL)    primary and that replica both die,         one replica round trip a
//	                              or a replica without it is promoted        pipeline, shared by its calls
//	Wait=all replicas             all of them die                            the slowest replica's round trip
//	appendfsync always, no        the disk is lost                           one fsync a pipeline
//	replicas, same server back
//	appendfsync everysec          the machine dies: up to about 2 s;         none
//	                              kill -9 of the process loses nothing
//
// Wait also prevents split brain: a primary that is cut off from its replicas acknowledges nothing. With Wait, every
// answer that a caller acts on reaches replicas, even "you lost the claim".
package redis
