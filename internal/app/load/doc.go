// SPDX-License-Identifier: Apache-2.0

// Package load makes work for a YARN cluster over the wire: AMs that ask
// as MapReduce does, nodes, submissions and readers, for the demo and for
// `creel load`. It speaks Hadoop's protocols to whatever address it is given,
// creel's or Hadoop's.
//
// Rates are open-loop: the next request is due at its time whether the last
// has been answered or not, and latency counts from when it was due, so that a
// stall shows in full (coordinated omission). Everything is bounded in count
// and time, and only loopback addresses are taken unless told otherwise.
package load
