// SPDX-License-Identifier: Apache-2.0

// Package redis implements the contract of package statestore on Redis 7.0 or later: one server, a primary under
// Sentinels, or a Redis Cluster. Each promise is one Lua script that touches one slot, decides by the server's clock,
// and may be repeated.
//
// # Keys
//
// All keys begin with {prefix:, the channel is prefix:changes. An ACL user needs ~{prefix:* &prefix:changes +@read
// +@write +@scripting +@pubsub +@connection +wait +time +info, and for a cluster +cluster.
//
//	{creel:c}:meta        hash: id, schema, state, pv (newest policy version)
//	{creel:c}:known       hash by member: reported for a rebuilding that is under way
//	{creel:c}:mark:<process> how often a process has looked at the store
//	{creel:c}:guard       hash: newest token of each lease; each shard has one too
//	{creel:c}:m e b r l d x   hashes by member: record, epoch, heartbeat, registered,
//	                      load, drain, deregistered
//	{creel:c}:t s h qn q:<leaf> log:<generation>:<leaf>  heartbeats and loads for partial
//	                      reads (scripts.go describes their content)
//	{creel:c}:p           hash by queue: policy;  ph:<queue> list: its history
//	{creel:c}:doc:<class> hash by name: documents;  dh:<class>:<name> list
//	{creel:c}:lease       hash by name;  k:<ring> hash: keys
//	{creel:c}:dt          hash by number: delegation tokens;  de sorted set: when they expire
//	{creel:c}:dm          hash by id: live daemons;  dn dx sorted sets: their order, when they expire
//	{creel:17}:a:<block>  hash of up to 64 applications: home, claimed, ends
//	{creel:17}:ah:<home>  sorted set: listing of a home in this shard
//	{creel:17}:ae         sorted set: when forgotten ones go
//	{creel:17}:ap:<block> hash of the same applications: why the home was chosen
//	{creel:17}:as:<app>   hash: UAM records by attempt
//	{creel:17}:r rh re    homes of reservations, as a, ah and ae
//
// There are 64 shards. A bucket of 64 applications is below Redis' hash-max-listpack-entries, which keeps it as one
// compact block. {creel:c}:probe is written by Health and expires by itself.
//
// # When Redis is ill
//
// A call is repeated, with growing pauses, until the deadline of its context (MaxWait without one), then it is
// creel.ErrUnavailable with RetryAfter:
//
//	slow, paused      each exchange is cut after Timeout and tried again
//	gone, cut off     connections are tried again; the pauses spread callers out
//	read only,        a failover: connections are made again, to the primary that
//	failing over      the Sentinels or the cluster name
//	loading           waited for
//	out of memory     claims are refused; heartbeats, renewals, ends and sweeps go on,
//	                  and so do all reads
//	disk full         writes are refused (MISCONF), reads go on
//	restarted empty   the shards lack the store's identity: claims, moves and the like
//	                  are refused and unknown homes are "unavailable", not "not
//	                  found", until Reopen (the routers call it, see
//	                  statestore/rebuild) has written back the homes that the
//	                  ResourceManagers report. Members register again at their
//	                  next heartbeat. A process that is newly started on an empty
//	                  store cannot see that it was emptied: with Config.Confirm,
//	                  which all daemons set, it waits for Reopen too, else it takes
//	                  the store for a new one.
//	restored          a backup, or a failover that lost writes: each process counts
//	                  its looks in the store, and finds its count lower than it
//	                  was. The store counts as restarted empty then. In a cluster
//	                  only a loss in the slot {creel:c} is detected.
//
// # What a failover may lose
//
// Redis replicates after it has answered. If a primary dies, or is cut off, its last acknowledged writes (usually
// milliseconds, at most the time until the Sentinels or the cluster gave it up) may be missing at the next one.
// Versions and lease tokens are built on the clock, so they rise all the same, and a lower token cannot pass for a
// fence that was lost with a lease.
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
// Wait also closes the split brain: a primary that is cut off from its replicas acknowledges nothing. With it each
// answer that a caller acts on is written through, also "you lost the claim".
package redis
