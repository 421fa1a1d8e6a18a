// SPDX-License-Identifier: Apache-2.0

// Package load generates load for a YARN cluster over the network: AMs that ask as MapReduce does, nodes, submissions
// and readers. The demo and `creel load` use it. It speaks Hadoop's protocols to any given address, of creel or
// Hadoop.
//
// Rates are open-loop: the next request is due at its time whether or not the last has been answered, and latency
// counts from the due time, so that a stall shows in full (coordinated omission). Everything is bounded in count and
// time. Only loopback addresses are accepted unless configured otherwise.
package load
