// SPDX-License-Identifier: Apache-2.0

// Package zookeeper proves the ResourceManager's state in ZooKeeper on real servers of the Hadoop kit: the whole
// contract, lost sessions, and servers that are killed, restarted and paused. It has tests only.
package zookeeper
