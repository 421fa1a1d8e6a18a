// SPDX-License-Identifier: Apache-2.0

package queues

import "time"

// Preemption configures whether and how containers are taken back from queues above their share, for queues that wait
// below theirs. The zero value is off.
type Preemption struct {
	On          bool          // scheduler.monitor.enable, yarn.scheduler.fair.preemption
	ObserveOnly bool          // decisions are only counted: no notice, no kill
	Interval    time.Duration // between two checks
	Wait        time.Duration // from the AM's notice to the kill

	// CapacityScheduler.
	PerRound             float64 // share 0..1 of the cluster that may be under notice at once
	IgnoredOver          float64 // a queue up to this share above its guarantee loses nothing
	Termination          float64 // share 0..1 of the due amount that one round takes; the rest may end by itself
	ConservativeDRF      bool    // nothing is taken of a type of which the queue has not too much
	IntraQueue           bool    // also between users and applications of one leaf
	IntraFirst           IntraOrder
	IntraFrom            float64 // share of its guarantee at which preemption within a leaf starts
	IntraMost            float64 // share of a leaf's guarantee that may be under notice within it
	IntraConservativeDRF bool    // as ConservativeDRF, within a leaf
	ReservedFirst        bool    // victims are sought on the nodes that asks have reserved before any other
	ReservedTwice        bool    // a queue's reservations count a second time as demand
	// Queues that all have their guarantees share the rest by these as well: containers
	// are taken from those with more than such a part. BalanceWait stands for Wait then.
	Balance     bool
	BalanceWait time.Duration

	// FairScheduler.
	Utilization float64 // nothing is taken back while the cluster is used no more than this share
}

// Victims selects the containers that a queue loses first.
type Victims uint8

// Orders of victims: Hadoop's, and the one that loses the least work.
const (
	VictimsDefault Victims = iota // the parent's; Newest at the root
	Newest                        // of the application that is served last, the newest container
	LeastWork                     // least work that is expected to be lost, whole nodes in one step for large asks
)

// IntraOrder is the first criterion within a leaf.
type IntraOrder uint8

// Orders within a leaf: intra-queue-preemption.preemption-order-policy.
const (
	IntraUserLimitFirst IntraOrder = iota
	IntraPriorityFirst
)
