// SPDX-License-Identifier: Apache-2.0

// Package topology has the nodes of one partition by host and rack, and finds a node with free resources among all of
// them or in a rack.
//
// # It decides
//
//   - which racks have an index of their own: from 64 nodes on, and only if there is a second rack. A smaller rack is
//     searched node by node.
//   - the order in which nodes are tried: by free memory, the most or the least first.
//
// # It promises
//
//   - Find returns a node that the caller accepts whenever there is one among the nodes with free resources, and never
//     a node that the caller did not accept.
//   - Equal calls lead to equal answers: no iteration depends on the order of a map.
//   - Find, Update and Ahead allocate nothing once the grids of the index exist.
//
// # The caller owes
//
//   - serial numbers from 0 on, one for each node of all partitions: Skip makes the entry of the next node, and Put
//     fills the entry of a node of this partition.
//   - Update after each change of a node's free resources, and after Put and Move. Before Remove it updates the node as
//     unusable.
//   - all checks beyond free memory: a found node may lack other types, or be excluded for the ask.
//
// A Map is generic, so that the owner's nodes are found without a second table; it calls no method of them.
package topology
