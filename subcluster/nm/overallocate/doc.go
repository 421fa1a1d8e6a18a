// SPDX-License-Identifier: Apache-2.0

// Package overallocate decides how much of a node's allocated but unused resources its opportunistic containers may
// use, and which of them end when the node's use is too high. It follows YARN-1011: two thresholds by resource type
// (Config), one look at the node's use at a time (Monitor), the youngest container first (Choose).
//
// Predictor estimates the peak of the node's use, so that a node lends nothing that its containers are likely to need.
// Hadoop has no such estimate.
package overallocate
