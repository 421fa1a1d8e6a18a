// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math/rand/v2"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Group is the part of an AM's asks that a ResourceManager schedules
// together: one priority, allocation request id and execution type, one size
// and label. Count containers are still wanted in all; Places are the hosts
// and racks some of them are wanted on.
type Group struct {
	Count int64          // still wanted and not yet granted by anybody
	Size  creel.Resource // of one container
	Label string         // node label expression, "" for the default partition
	// LabelGiven: the ask or its application names that label, also none. Else, without a
	// label, the default of the queue holds.
	LabelGiven bool
	Strict     bool // nothing but Places will do
	// Late: it has waited for so long that a UAM is worth its cost for however few.
	Late   bool
	Places []Place
	// Held is what members have been asked for and have not granted yet; a
	// split moves as little of it as it can. By member.
	Held []Share
	// From is the member in which those wait that are placed anew, though it may be asked
	// still; "" for none.
	From creel.SubclusterID
	// Soon: it has not waited there for long. From says that it has no room, and all that waits there
	// looks for some elsewhere at the same time.
	Soon bool
}

// Place is a host or rack and how many of the group's containers are wanted
// there. Members have it; none when nobody knows the name.
type Place struct {
	Name    string
	Count   int64
	Members []creel.SubclusterID
	// Strict is of a rack that stands beside its hosts (its line does not relax
	// locality): by itself it will not do.
	Strict bool
}

// Share is how many containers of a group one member is to be asked for, an
// absolute number.
type Share struct {
	Member creel.SubclusterID
	Count  int64
}

// Reach is one member as a session can use it at this moment, by member id.
type Reach struct {
	Member creel.SubclusterID
	Home   bool
	UAM    bool // a UAM is already registered there
	// Unproven: a UAM that is there, or was lately, has granted nothing since it was wanted.
	Unproven bool
	Delivers bool // it has granted the application something lately
	Closed   bool // slow, lost, refused the UAM: gets nothing new, and what it holds moves away
	Stuck    bool // the group has waited there too long: it is no longer worth its places
	// Headroom is the limit of the member's last answer to this application;
	// Known is false before the first.
	Headroom creel.Resource
	Known    bool
	// Summed: the application asks there in a label's partition, too, and headroom is the sum.
	Summed bool
	// MemoryOnly: by its answer to the registration there the member compares memory alone.
	MemoryOnly bool
	Pending    int64 // containers asked for there and not granted, over all groups of the same label
}

// Plan is how a group is split. For a policy that hedges (broadcast) the
// shares add up to more than Group.Count: whoever grants first wins, and the
// session lowers the others. For all others they add up to it exactly.
type Plan struct {
	Shares  []Share // by member, those with 0 left out
	Hedged  bool
	Rooms   bool  // the policy looks for room: asks at a member that has none are worth placing anew soon
	Waiting int64 // of what was placed anew, how many fit nowhere now
	// Unplaced wait with nobody: home would refuse them, and who would not cannot be
	// asked now. The shares lack as many.
	Unplaced int64
	Reason   Reason
}

// Split shares a group over the members within reach, of which exactly one is
// home. It never loses a container: what nobody can take now is asked of home, but
// what home would refuse for its label. The error is of kind creel.ErrNotPermitted when
// the policy rejects asks, creel.ErrInvalidLabel when no member could get them.
func (p Policy) Split(
	view *subcluster.View,
	queue creel.QueuePath,
	g Group,
	reach []Reach,
	rnd *rand.Rand,
) (Plan, error) {
	return splitGroup(p.splitRule(), view, queue, g, reach, rnd)
}
