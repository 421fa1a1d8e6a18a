// SPDX-License-Identifier: Apache-2.0

// Package opportunistic places opportunistic containers: those that a ResourceManager grants without a guarantee, and
// that their nodes queue until resources are free. It is Hadoop's centralised allocator, as plain decisions. Time and
// randomness are arguments, and it knows no container, only amounts at nodes.
//
// # Loads
//
// Nodes has the load of each node, from its heartbeats. Once per period it sorts the nodes, the least loaded first,
// without full nodes. From the sorted list it computes the queue limit that each node gets: the mean plus sigma
// standard deviations, between two bounds. Sorting happens with a heartbeat, never with an allocation.
//
// # Asks
//
// Asks are an attempt's outstanding asks, by priority, allocation request id and size. An ask has one number for any
// place and a number for each host and rack that it names. Allocate serves the most urgent priority first. An ask first
// gets containers on its hosts, then on its racks, then on the first admitting node of the least loaded ones, from a
// random start. With Config.Placing LeastFilled it gets each on the node that running and waiting containers fill
// least.
//
// # Differences from Hadoop
//
//   - Hadoop serves the least urgent priority first, and ignores labels.
//   - Hadoop reads the capacity of a node's queue from the first heartbeat only.
//   - A container that was granted, and that its node has not reported yet, counts in the node's queue until the
//     report. In Hadoop it counts until the node's next heartbeat, whether or not its AM has started it.
//   - An ask that insists on its places gets no others. Hadoop goes to any node.
//   - A container larger than a node never goes there. With QUEUE_WAIT_TIME, a node with neither free resources nor
//     room in its queue gets none. Hadoop then puts any number of containers there.
package opportunistic
