// SPDX-License-Identifier: Apache-2.0

// Package policies chooses the subcluster that becomes an application's home, and splits an AM's asks over
// subclusters.
//
// Decisions are pure. The inputs are the immutable view of the federation, the request, and a random source. The
// output is a value with its Reason. A decision reads no clock, stores no state and never fetches, logs or counts.
// The same arguments produce the same answer.
//
// Parse makes a Policy from a JSON document. A document applies to a queue and all queues below it (see
// subcluster.Policies and Table):
//
//	{"home":  {"policy": "load", "weights": {"sc-a": 2, "sc-b": 1}},
//	 "split": {"policy": "locality", "weights": {"sc-a": 1}, "headroomAlpha": 0.5}}
//
// Each home and split policy has its own file; HomeNames and SplitNames list them. The policy balanced exists only in
// creel, and is the default for homes and splits. Parse also accepts documents of Hadoop's policy managers.
package policies
