// SPDX-License-Identifier: Apache-2.0

// Package policies decides which subcluster becomes an application's home, and which subclusters get which part of an
// AM's asks.
//
// View in, decision out. The inputs of a decision are the immutable view of the federation, the request, and a random
// source; the output is a value with its Reason. A decision reads no clock, stores no state and never fetches, logs
// or counts. The same arguments produce the same answer.
//
// Parse makes a Policy from a JSON document. One document applies to a queue and everything below it, see
// subcluster.Policies and Table:
//
//	{"home":  {"policy": "load", "weights": {"sc-a": 2, "sc-b": 1}},
//	 "split": {"policy": "locality", "weights": {"sc-a": 1}, "headroomAlpha": 0.5}}
//
// Each home and split policy has its own file; HomeNames and SplitNames list them. The policy balanced is creel's own
// and the default of both. Documents of Hadoop's policy managers are accepted too, see Parse.
package policies
