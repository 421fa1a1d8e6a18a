// SPDX-License-Identifier: Apache-2.0

// Package zookeeper implements the contract of package statestore in ZooKeeper, in the layout of Hadoop's
// ZookeeperFederationStateStore. So Hadoop's Routers, AMRMProxies and policy generators share members, homes,
// reservations and policies with creel's daemons.
//
// It decides nothing by itself: package nodes does. This package makes a nodes.Tree of ZooKeeper.
//
// # Promises
//
// Each change is one transaction of ZooKeeper, which checks versions. The store's clock is the leader's, which stamps
// each write. Below Hadoop's root (yarn.federation.state-store.zk.parent-path) Hadoop's records are the nodes of its
// own store, and creel's are below creel/. Hadoop's Router creates the node of a home first and writes the home into it
// later. A Router that pauses for more than 10 s in between overwrites the home that was claimed then.
//
// # Not promised
//
// A change of more than 1,000,000 bytes after compression is rejected with creel.ErrInvalidRequest: documents and UAM
// records may be larger in other stores. Changes of one record take two exchanges with ZooKeeper each. Nodes of
// applications that Hadoop splits (yarn.resourcemanager.zk-appid-node.split-index) are not read.
//
// # The caller owes
//
// An ensemble whose nodes nothing else changes or restores. A copy of the nodes, restored by a tool, is recognized: its
// homes wait for Reopen. A restored data directory of all servers is not; delete creel/meta after it.
package zookeeper
