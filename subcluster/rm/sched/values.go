// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// These are the small values that the data consists of. Their rules are in the files that use them.

// tally counts the containers of a queue itself since the start, and those of its former descendants.
type tally struct {
	granted, released int64
	near              [places.NumDistances]int64 // of the granted ones, by the distance from the named places
}

func (t *tally) add(o *tally) {
	t.granted += o.granted
	t.released += o.released
	for i, n := range o.near {
		t.near[i] += n
	}
}

// LossCounts counts preempted containers.
type LossCounts struct {
	Containers int64
	Amount     amounts.Vec
	OverTime   amounts.Vec // times the milliseconds of their runs
}

// AppCounts counts applications by outcome.
type AppCounts struct{ Submitted, Completed, Failed, Killed int64 }

// shareSum is a sum of dominant shares, in units that add without rounding, so that the order of addition does not
// matter.
type shareSum int64

// shareSet is one computation of the shares of all queues.
type shareSet uint8

const (
	// inDecisions limits the AMs of a queue. It may be half a second old, because applications come and go faster
	// than a large tree can be divided.
	inDecisions shareSet = iota
	// inViews is the set for views: current, and separate, so that a view changes no decision.
	inViews
	shareSets
)

// fairShares are a queue's shares in one computation.
type fairShares struct{ share, steady amounts.Vec }

// rank is the compared value of queues.
type rank struct {
	ratio  float64 // used over guaranteed, or share over weight
	needy  bool    // FairScheduler: below its minimum share
	needed float64 // FairScheduler: used over minimum share
	under  bool    // at most its guarantee
}

// wantKey identifies a scheduling request of an application.
type wantKey struct {
	priority int32
	alloc    int64
	tags     string
}

// NamedPlaces lists the places of a container's node that its ask named, if the ask accepts no other places; 0 for an
// ask that runs anywhere. Restore asks for them again.
type NamedPlaces uint8

const (
	insisted   NamedPlaces = 1 << iota // "*" is not relaxed
	onHost                             // the host was named,
	onRack                             // and the rack,
	rackStrict                         // only its named hosts
)

// Reason is the reason for the choice of a container's node.
type Reason uint8

// Reasons of a grant.
const (
	ReasonNone      Reason = iota
	NodeLocal              // on a host the ask named
	RackLocal              // on a rack that the ask named
	OffSwitch              // anywhere, because the ask named no place
	Relaxed                // anywhere, after the wait for a local node
	RackRelaxed            // on the rack, after the wait for a local node
	FromReservation        // on the node reserved for it
	Recovered              // it ran before: see Charge
	ByNode                 // by the AM's NodeManager: distributed scheduling
)

var reasons = [...]string{
	"none",
	"node-local",
	"rack-local",
	"off-switch",
	"relaxed to any node",
	"relaxed to the rack",
	"from its reservation",
	"recovered",
	"placed by a NodeManager",
}

func (r Reason) String() string { return reasons[r] }

// Use is the permitted use of a node.
type Use uint8

// Uses of a node.
const (
	Off      Use = iota // none: not part of the cluster
	Draining            // its containers keep running, new ones are not placed
	Open                // everything
)

// AMAsk is an application's ask for its AM: one container of the size passed to AddApp.
type AMAsk struct {
	Priority int32
	Strict   bool // only at the listed places
	Places   []AMPlace
	Label    string // of the partition that the AM must run in
}

// AMPlace is a preferred host or rack for an AM.
type AMPlace struct {
	Name   string
	Strict bool // of a rack: only on its named hosts
}

// Rule is the reason for taking a container back.
type Rule = preempt.Rule

// RoundResult is the result of the last round, for reports.
type RoundResult struct {
	At      int64       // ns since the epoch; 0 = no round yet
	Due     amounts.Vec // the queues' excess, up to the others' shortage
	Allowed amounts.Vec // limit of the amount under notice
	Chosen  int         // number of victims; if only observing, of possible victims
}
