// SPDX-License-Identifier: Apache-2.0

// Package mariadb implements the contract of package statestore in MariaDB, in the tables of Hadoop's
// SQLFederationStateStore. So Hadoop's Routers, AMRMProxies and policy generators share members, homes, reservations
// and policies with creel's daemons.
//
// It decides nothing by itself: package nodes does. This package makes a nodes.Tree of the tables.
//
// # Tables
//
// Hadoop's tables are those of its 3.4 scripts: membership, applicationsHomeSubCluster, reservationsHomeSubCluster,
// policies. A row is a node, whose data is the message of Hadoop's store in ZooKeeper. Everything else is in
// creel_nodes, one row a node. Prepare creates the tables that are missing.
//
// # Promises
//
// Each change is one transaction of InnoDB with the isolation level REPEATABLE READ. It locks each row that the
// decision has read, and the gap of each missing one, in the order of their paths, and compares it. Rows of creel_nodes
// are compared by version, Hadoop's by content. A deadlock or a lock that another transaction holds for 3 s is a
// conflict: the change is decided again. A process that dies between two statements loses its locks after 10 s.
//
// The store's clock is the server's. A home is claimed once among all programs: Hadoop's procedures insert it in one
// statement. Watch reads the feeds twice a second.
//
// A copy of the tables is recognized by the time at which creel_nodes was created: after a dump was restored, or a
// replica was promoted, homes wait for Reopen.
//
// # Not promised
//
// Changes on several servers of a Galera cluster at once: rows that a transaction only reads are checked on its server
// alone. Changes that a server acknowledged and lost: with innodb_flush_log_at_trx_commit other than 1, or by a
// failover to a replica that is behind; Health reports the former. A row of Hadoop's that was deleted and inserted
// again within one second, with the same home, counts as unchanged. Delegation tokens of Hadoop's Routers are neither
// read nor written.
//
// # The caller owes
//
// A database with one time zone for creel's sessions and Hadoop's, which write local times: UTC. No program may write
// creel_nodes. A restore that keeps this table is not recognized: delete the row /creel/meta after it.
package mariadb
