// SPDX-License-Identifier: Apache-2.0

// Package zkstate is a ResourceManager's state in ZooKeeper: it survives the ResourceManager's host, and another host
// can continue it. It implements the contract of package state. It also has the elector of an HA pair.
//
// # Nodes
//
//	PARENT/ZKRMStateRoot             the root of Hadoop's ZKRMStateStore; its ACL fences
//	  RMVersionNode                  a version that Hadoop's ResourceManager refuses
//	  RM_ZK_FENCING_LOCK             exists only within a write
//	  CreelHolder                    name of the holder, which writes it again when it is idle
//	  CreelState                     JSON: layout, name, number of the first and of the last node below
//	    0000000001 ...               operations of transactions, as package state encodes them
//	BASE/CLUSTER/ActiveStandbyElectorLock   ephemeral: the leader of the pair, as Hadoop's elector writes it
//	BASE/CLUSTER/ActiveBreadCrumb           the last leader, if it did not end by itself
//
// Hadoop's ResourceManager can neither read nor continue the log. It refuses to start on it. creel does not start on
// the state of a Hadoop ResourceManager either. Package hadoopstate converts one into the other; a [Session] reads and
// writes its nodes.
//
// With [Records], each transaction also changes the nodes from which Hadoop's ResourceManager continues. RMVersionNode
// is then Hadoop's. Each opening of either implementation sets the ACL of the root. If its version is not the one in
// CreelState, Hadoop has led: the opening changes the entries to those of Hadoop's nodes.
//
// # How it works
//
// All transactions that arrive while a group is under way become the next group. A group is one node, or several if it
// is larger than a request to ZooKeeper may be. The transaction of ZooKeeper that creates the last of them also raises
// the number in CreelState, so a group is visible as a whole or not at all.
//
// The nodes are a log: the entries are the result of all operations in their order. The holder has a copy of the
// entries in memory. When nodes are many, or half of their bytes are outdated, the next group repeats the live entries
// of the oldest nodes, and deletes these nodes.
//
// # Fencing
//
// As in Hadoop: an opening sets the ACL of the root, so that only the digest of this process may create and delete
// children. Each write creates RM_ZK_FENCING_LOCK first and deletes it last, within one transaction of ZooKeeper. A
// former holder lacks the right to create it, so its write fails as a whole.
//
// A write whose answer was lost is sent again. Numbers of nodes and the version of CreelState show whether the first
// one was applied, and a late one changes nothing.
//
// # Followers
//
// A [Follower] reads CreelState, and the nodes that it has not read. Without changes that is one read of about 100
// bytes. If the holder has deleted nodes that the follower lacks, it reads all nodes.
//
// # Elector
//
// An [Elector] is compatible with Hadoop's ActiveStandbyElector: the same nodes with the same data. A claim is a write,
// so a majority of the servers has confirmed it. It is valid for less than the session lasts. The elector decides only
// which process answers; the state is protected by its fence.
package zkstate
