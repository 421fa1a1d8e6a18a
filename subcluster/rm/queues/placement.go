// SPDX-License-Identifier: Apache-2.0

package queues

import "github.com/creelrm/creel"

// Placement chooses the queue of a submission: queue mappings or placement rules. It must be a pure function of its
// arguments. exists reports whether a path is a live leaf. An empty path keeps the queue named by the submission; an
// error rejects the submission.
type Placement interface {
	Place(s PlacementRequest, exists func(creel.QueuePath) bool) (PlacementResult, error)
	// KeepsNamed reports whether each submission that names a queue, other than "default", stays in it.
	KeepsNamed() bool
}

// PlacementRequest is the data about a submission for placement rules.
type PlacementRequest struct {
	Application creel.ApplicationID
	User        string
	Groups      []string // primary group first
	Name        string
	Type        string
	Tags        []string
	Queue       string // as submitted, possibly a leaf name, "default" or ""
}

// PlacementResult is the queue that placement chose. Create permits creating the queue if it is missing (below a
// queue with AutoCreate in CapacityScheduler, anywhere in FairScheduler).
type PlacementResult struct {
	Queue  creel.QueuePath
	Create bool
	Rule   string // the deciding rule, for reasons and logs
}
