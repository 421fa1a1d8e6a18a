// SPDX-License-Identifier: Apache-2.0

package queues

import "time"

// Preemption configures whether and how containers of queues above their share are preempted, for queues that wait
// below theirs. The zero value is off.
type Preemption struct {
	On          bool          // scheduler.monitor.enable, yarn.scheduler.fair.preemption
	ObserveOnly bool          // decisions are only counted, without notice or kill
	Interval    time.Duration // between two checks
	Wait        time.Duration // from the AM's notice to the kill

	// For CapacityScheduler.
	PerRound             float64 // share 0..1 of the cluster that may be under notice at the same time
	IgnoredOver          float64 // a queue up to this share above its guarantee loses nothing
	Termination          float64 // share 0..1 of the due amount that one round takes; the rest may end by itself
	ConservativeDRF      bool    // no type is taken from a queue that has not too much of it
	IntraQueue           bool    // also between users and applications of one leaf
	IntraFirst           IntraOrder
	IntraFrom            float64 // share of its guarantee at which preemption within a leaf starts
	IntraMost            float64 // share of a leaf's guarantee that may be under notice within it
	IntraConservativeDRF bool    // ConservativeDRF within a leaf
	ReservedFirst        bool    // search for victims first on the nodes that asks have reserved
	ReservedTwice        bool    // a queue's reservations count a second time as demand
	// Queues that all have their guarantees also share the rest in proportion to these: containers are taken from
	// queues with more than their part. BalanceWait then replaces Wait.
	Balance     bool
	BalanceWait time.Duration

	// For FairScheduler.
	Utilization float64 // nothing is preempted while the cluster's use is at most this share
}

// Victims selects the containers that a queue loses first.
type Victims uint8

// Orders of victims: Hadoop's, and the one that loses the least work.
const (
	VictimsDefault Victims = iota // the parent's; Newest at the root
	Newest                        // the newest container of the application that is served last
	LeastWork                     // least expected loss of work, whole nodes in one step for large asks
)

// IntraOrder is the first criterion within a leaf.
type IntraOrder uint8

// Orders within a leaf: intra-queue-preemption.preemption-order-policy.
const (
	IntraUserLimitFirst IntraOrder = iota
	IntraPriorityFirst
)
