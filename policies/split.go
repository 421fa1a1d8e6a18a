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
	Count int64          // still wanted and not yet granted by any member
	Size  creel.Resource // of one container
	Label string         // node label expression, "" for the default partition
	// LabelGiven: the ask or its application names that label, or names none explicitly. Otherwise, without a label,
	// the queue's default applies.
	LabelGiven bool
	Strict     bool // nothing but Places will do
	// Late: it has waited for so long that a UAM is worth its cost for however few.
	Late   bool
	Places []Place
	// Held are the asks sent to members and not granted yet, by member; a split moves as few of them as it can.
	Held []Share
	// From is the member where the asks being placed again wait, though it may get asks still; "" for none.
	From creel.SubclusterID
	// Soon means that they have not waited there for long: From reports no free capacity, and all asks waiting there
	// look elsewhere at the same time.
	Soon bool
}

// Place is a host or rack and how many of the group's containers are requested there. Members are those that have it;
// none if the name is unknown.
type Place struct {
	Name    string
	Count   int64
	Members []creel.SubclusterID
	// Strict means that the rack accompanies its hosts (its line does not relax locality): by itself it is not
	// accepted.
	Strict bool
}

// Share is the number of a group's containers to ask of one member, an absolute number.
type Share struct {
	Member creel.SubclusterID
	Count  int64
}

// Reach is one member as a session can use it at this moment, by member id.
type Reach struct {
	Member creel.SubclusterID
	Home   bool
	UAM    bool // a UAM is already registered there
	// Unproven: a UAM that is there, or was recently, has had no grant since it was wanted.
	Unproven bool
	Delivers bool // it has granted the application containers recently
	Closed   bool // slow, lost, or it refused the UAM: gets no new asks, and the asks it holds move away
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

// Plan is how a group is split. For a policy that hedges (broadcast) the shares add up to more than Group.Count: the
// first grant wins, and the session lowers the other asks. For all other policies they add up to it exactly.
type Plan struct {
	Shares  []Share // by member, those with 0 left out
	Hedged  bool
	Rooms   bool  // the policy looks for free capacity: asks at a member without any are worth placing again soon
	Waiting int64 // containers placed again that fit nowhere now
	// Unplaced containers are sent to no member: home would reject them, and members that would not cannot be asked
	// now. The shares lack as many.
	Unplaced int64
	Reason   Reason
}

// Split shares a group over the members within reach, of which exactly one is home. It never loses a container: those
// that no member can take now are asked of home, unless home would reject their label. The error is of kind
// creel.ErrNotPermitted if the policy rejects asks, creel.ErrInvalidLabel if no member could get them.
func (p Policy) Split(
	view *subcluster.View,
	queue creel.QueuePath,
	g Group,
	reach []Reach,
	rnd *rand.Rand,
) (Plan, error) {
	return splitGroup(p.splitRule(), view, queue, g, reach, rnd)
}
