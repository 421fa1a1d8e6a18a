// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math/rand/v2"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Group is the part of an AM's asks that a ResourceManager schedules together: with the same priority, allocation
// request id, execution type, size and label. Count is the total number of containers still wanted. Places has the
// hosts and racks requested for some of them.
type Group struct {
	Count int64          // still wanted and not yet granted by any member
	Size  creel.Resource // of one container
	Label string         // node label expression, "" for the default partition
	// LabelGiven: the ask or its application names Label explicitly, even "". Otherwise an empty Label means the
	// queue's default.
	LabelGiven bool
	Strict     bool // only Places are accepted
	// LongQueue: the containers are opportunistic, and a node's queue of this length is long; 0: queues do not matter.
	LongQueue int32
	// Late: it has waited for so long that any number of containers is worth a UAM.
	Late   bool
	Places []Place
	// Held has the asks sent to members and not granted yet, by member. A split moves as few of them as possible.
	Held []Share
	// From is the member where the asks that are placed again wait now; "" for none. It may still get asks.
	From creel.SubclusterID
	// Soon: the asks have waited there for a short time only. They are placed again since From reports no free
	// capacity, together with all asks waiting there.
	Soon bool
}

// Place is a host or rack, and the number of the group's containers requested there. Members has the members with
// this place, none if the name is unknown.
type Place struct {
	Name    string
	Count   int64
	Members []creel.SubclusterID
	// Strict: the rack is only the companion of its hosts (its line does not relax locality), so other nodes of the
	// rack are not accepted.
	Strict bool
}

// Share is the absolute number of a group's containers to ask of one member.
type Share struct {
	Member creel.SubclusterID
	Count  int64
}

// Reach is the present state of one member for a session. Lists are sorted by member id.
type Reach struct {
	Member creel.SubclusterID
	Home   bool
	UAM    bool // a UAM is already registered there
	// Unproven: the present or a recent UAM there has had no grant since it was wanted.
	Unproven bool
	Delivers bool // it has granted the application containers recently
	Closed   bool // slow, lost, or it refused the UAM: it gets no new asks, and its asks move away
	Stuck    bool // the group has waited there too long: its places there no longer count
	// Headroom is the headroom in the member's last answer to this application. Known is false before the first
	// answer.
	Headroom creel.Resource
	Known    bool
	// Summed: the application also asks for nodes of a label there, and Headroom is the sum over partitions.
	Summed bool
	// MemoryOnly: by its answer to the registration, the member compares only memory.
	MemoryOnly bool
	Pending    int64 // containers asked for there and not granted, of all groups with the same label
}

// Plan is the split of a group. The shares sum to Group.Count, except for a policy that hedges (broadcast). With
// hedging the shares sum to more: the first grant wins, and the session lowers the other asks.
type Plan struct {
	Shares  []Share // by member, without zero shares
	Hedged  bool
	Rooms   bool  // the policy uses free capacity: asks at a member without any should be placed again soon
	Waiting int64 // containers placed again that do not fit anywhere now
	// Unplaced containers are sent to no member, and are missing in the shares. Home would reject them, and members
	// that would accept them cannot be asked now.
	Unplaced int64
	Reason   Reason
}

// Split splits a group over the members within reach. Exactly one of them is home. It never loses a container: home
// is asked for containers that no member can take now, unless home would reject their label. The error is of kind
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
