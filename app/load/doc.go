// SPDX-License-Identifier: Apache-2.0

// Package load generates load for a YARN cluster over the network: AMs with MapReduce's asks, nodes, submissions and
// reads. The demo and `creel load` use it. It uses Hadoop's protocols to any given address, of creel or Hadoop.
//
// Rates are open-loop: the next request is due at its time even if the last one is unanswered, and latency counts
// from the due time. So a stall is fully visible (coordinated omission). Count and time are limited. Only loopback
// addresses are accepted unless configured otherwise.
package load
