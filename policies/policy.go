// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math/rand/v2"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// PlaceLookup returns the members that have the host or rack of that name by the ResourceManagers' reports; none if
// it is unknown.
type PlaceLookup func(name string) []creel.SubclusterID

// Submission has the data about an application that is available when its home is chosen.
type Submission struct {
	Application creel.ApplicationID
	Name, User  string
	Type        string          // "SPARK", "MAPREDUCE"
	Queue       creel.QueuePath // named by the client, maybe as a leaf only, or chosen by placement rules
	Size        creel.Resource  // of the AM's container
	Label       string          // node label expression of the AM, "" for the default partition
	Tags        []string        // from the client

	// Places are the hosts and racks requested for the AM's container, nearest first; Strict means that no other
	// place is accepted.
	Places []string
	Strict bool

	// Reservation is the reservation of the application, zero for none.
	Reservation creel.ReservationID
	// Reserved is the member that has the reservation, if known: no other member can be the home.
	Reserved creel.SubclusterID

	// Where resolves Places; nil if they cannot be resolved.
	Where PlaceLookup
	// Assumed writes the load that this router has sent to each member of a view into each, which is parallel to
	// view.Members. Nil: no load is assumed.
	Assumed func(view *subcluster.View, each []RecentLoad)
}

// RecentLoad is the number of applications sent to a member since its last heartbeat, and the resources that they may
// use. The member's load report does not contain them yet.
type RecentLoad struct {
	Apps int64
	Size creel.Resource
}

// Policy decides for one queue. The zero value is the default: balanced homes
// and balanced splits.
type Policy struct {
	home    homeRule
	split   splitRule
	version int64           // of its document in a Table; 0: none
	of      creel.QueuePath // the document's queue
}

// Default is the policy of queues without a document.
func Default() Policy { return Policy{home: balancedHome{}, split: balancedSplit{}} }

// homeRules and splitRules have all rules that a document may name, sorted by name. Settings, messages and commands
// list the names with HomeNames and SplitNames.
var (
	homeRules = []homeRule{
		balancedHome{},
		hashHome{},
		loadHome{},
		localityHome{},
		priorityHome{},
		rejectHome{},
		uniformHome{},
		weightedHome{},
	}
	splitRules = []splitRule{balancedSplit{}, broadcastSplit{}, homeSplit{}, localitySplit{}, rejectSplit{}}
)

// HomeNames returns the names of the home policies, in alphabetical order.
func HomeNames() []string { return names(homeRules) }

// SplitNames returns the names of the split policies, in alphabetical order.
func SplitNames() []string { return names(splitRules) }

func names[R interface{ name() string }](rules []R) []string {
	out := make([]string, len(rules))
	for i, r := range rules {
		out[i] = r.name()
	}
	return out
}

// Home chooses a member for a submission. tried has the members that did not accept it. The reason is set also with
// an error. The error is of kind creel.ErrNoSubcluster (no member can take it now: try later), creel.ErrNotPermitted
// (the policy rejects it) or creel.ErrInvalidRequest.
func (p Policy) Home(
	view *subcluster.View,
	s Submission,
	tried []creel.SubclusterID,
	rnd *rand.Rand,
) (creel.SubclusterID, Reason, error) {
	return chooseHome(p, view, s, tried, rnd)
}

// HomeName returns the name of the home rule, as in documents.
func (p Policy) HomeName() string {
	return p.homeRule().name()
}

// SplitName returns the name of the split rule, as in documents.
func (p Policy) SplitName() string {
	return p.splitRule().name()
}
