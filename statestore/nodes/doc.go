// SPDX-License-Identifier: Apache-2.0

// Package nodes implements the contract of package statestore over a tree of versioned nodes, in the layout of Hadoop's
// federation store. statestore/zookeeper and statestore/mariadb make such a Tree of the systems that Hadoop's programs
// use.
//
// It decides nothing by itself: each promise is a method of the in-memory store (statestore/memory), called with the
// records of a few nodes.
//
// # Promises
//
// Each change is one transaction of the system. It checks the version of each node that the decision has read, and is
// decided again if one of them changed. A refusal is confirmed in the same way, so it is not older than the call. The
// store's clock is the system's. Between writes a process adds the time of its own clock, for at most 5 s.
//
// # Nodes
//
// Below Config.Parent Hadoop's records are
//
//	memberships/<member>        SubClusterInfoProto
//	applications/<application>  ApplicationHomeSubClusterProto, or Hadoop 3.3's SubClusterIdProto
//	reservation/<reservation>   SubClusterIdProto
//	policies/<queue>            SubClusterPolicyConfigurationProto
//
// and creel's are below creel/, which Hadoop's programs do not read: JSON, compressed from 4 KiB on.
//
//	meta                        schema and identity
//	clock                       written to learn the time
//	feed/<kind>                 the last change of a kind, for Watch
//	members drains              records of members; drains of members that Hadoop registered
//	apps uams reservations      claims, placements and ends; UAM records
//	ending                      index of ended records, by time
//	policies                    versions of policies, and the number of the newest
//	documents history           documents by class; versions of their history
//	leases keys tokens          one node each
//	events daemons              one node each
//	reported                    members reported for a rebuild
//
// # Beside Hadoop's programs
//
// A member has one owner. With a record of creel's, Hadoop's record follows it. A member that only Hadoop's
// ResourceManager registered is a member running Hadoop, which is alive for Config.HadoopLease after a heartbeat.
// Members of Hadoop's are not signed: with the cluster's secret in a file, daemons leave them out.
//
// Hadoop's record decides the home of an application. A home that Hadoop's programs claimed, moved or deleted counts as
// claimed, moved or deleted for creel's daemons. A claim finds a home that Hadoop's Router wrote before, and Hadoop's
// Router finds one that creel's wrote before. Hadoop's Router creates a node first and writes the home into it later.
// Claims wait for it up to 10 s. A Router that pauses for longer in between overwrites the home that was claimed then.
//
// A policy in Hadoop's form (a policy manager with parameters) is in Hadoop's record too. Other policies have no record
// there: Hadoop's Routers then use their default for the queue. A record that Hadoop's programs wrote becomes a version
// when a process of creel reads it. An invalid one is reported in Records.Problems.
//
// # Not promised
//
// A change above Config.MaxChange after compression is rejected with creel.ErrInvalidRequest. Changes of one record are
// made one after another; so are all changes of documents of one class, policies, events, and delegation tokens issued.
// A listing of homes reads all homes. Watch announces changes by creel alone, and sends ChangeResync if changes are
// faster than its reads. Daemons that start at the same moment may exceed MaxDaemons. Delegation tokens of Hadoop's
// Routers are neither read nor written.
//
// # The caller owes
//
// A Tree that keeps its own promises, and whose nodes nothing else changes or restores.
package nodes
