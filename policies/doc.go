// SPDX-License-Identifier: Apache-2.0

// Package policies decides: which subcluster becomes an application's home,
// and which subclusters get which part of an AM's asks.
//
// View in, decision out. A decision gets the immutable view of the federation,
// what is asked, and a random source; it returns a value with its Reason. It
// reads no clock, keeps no state and never fetches, logs or counts. The same
// arguments give the same answer.
//
// A Policy is made from a JSON document by Parse. One document holds for a
// queue and everything below it, see subcluster.Policies and Table:
//
//	{"home":  {"policy": "load", "weights": {"sc-a": 2, "sc-b": 1}},
//	 "split": {"policy": "locality", "weights": {"sc-a": 1}, "headroomAlpha": 0.5}}
//
// Home and split policies have a file each; HomeNames and SplitNames list them.
// balanced is ours and the default of both. What Hadoop's policy managers mean is read too, see Parse.
package policies
