// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Mix is the state of an AM that asks for some of its containers as opportunistic ones, and promotes some of these
// while they wait or run. A nil Mix asks for guaranteed ones only.
type Mix struct {
	play *Play
	rnd  *rand.Rand
	open map[int32][]creel.ExecutionType // of each wanted container, by priority
	// promotions are the requested ones, by container, until the node has applied them or the container has ended.
	promotions map[creel.ContainerID]*promotion
}

// promotion is the request to make a container guaranteed.
type promotion struct {
	version int32
	due     time.Time // when it is requested again, unless its ResourceManager answers before
	told    bool      // the AM has the container's new token
}

// patience is the time after which an AM repeats the request of a promotion: the ResourceManager may have restarted.
const patience = time.Minute

// NewMix returns the state of an AM that has asked for nothing.
func NewMix(p *Play, rnd *rand.Rand) *Mix {
	return &Mix{
		play: p, rnd: rnd, open: map[int32][]creel.ExecutionType{}, promotions: map[creel.ContainerID]*promotion{},
	}
}

// Ask sets the number of containers wanted at a priority. It draws the types of additional ones.
func (x *Mix) Ask(priority, count int32) {
	if x == nil {
		return
	}
	open := x.open[priority]
	for len(open) < int(count) {
		kind := creel.Guaranteed
		if x.rnd.Float64() < x.play.Share {
			kind = creel.Opportunistic
		}
		open = append(open, kind)
	}
	x.open[priority] = open[:count]
}

// Part is the number of wanted containers of one type.
type Part struct {
	Kind  creel.ExecutionType
	Count int32
}

// Parts returns an ask's numbers by type.
func (x *Mix) Parts(priority, count int32) []Part {
	if x == nil || x.play.Share == 0 {
		return []Part{{creel.Guaranteed, count}}
	}
	out := []Part{{creel.Guaranteed, 0}, {creel.Opportunistic, 0}}
	for _, k := range x.open[priority] {
		if k == creel.Opportunistic {
			out[1].Count++
		} else {
			out[0].Count++
		}
	}
	return out
}

// Granted takes a grant out of the wanted containers. It reports whether one of its type was wanted.
func (x *Mix) Granted(c *pb.ContainerProto, priority int32) bool {
	if x == nil {
		return true
	}
	kind := creel.ExecutionType(c.GetExecutionType())
	if kind == creel.Opportunistic {
		x.play.Result.Granted++
		if IsPlaced(pb.ToContainerID(c.GetId())) {
			x.play.Result.Placed++
		}
	}
	i := slices.Index(x.open[priority], kind)
	if i < 0 && kind == creel.Opportunistic && x.play.Lending != nil { // lent for a guaranteed ask
		x.play.Lending.Result.Lent++
		i = slices.Index(x.open[priority], creel.Guaranteed)
	}
	if i < 0 {
		return false
	}
	x.open[priority] = slices.Delete(x.open[priority], i, i+1)
	return true
}

// Started draws whether a container that its node has accepted is promoted.
func (x *Mix) Started(c *pb.ContainerProto) {
	kind := creel.ExecutionType(c.GetExecutionType())
	if x == nil || kind != creel.Opportunistic || x.rnd.Float64() >= x.play.Promote {
		return
	}
	x.promotions[pb.ToContainerID(c.GetId())] = &promotion{version: c.GetVersion()}
}

// Promotes reports whether a container's promotion is under way.
func (x *Mix) Promotes(id creel.ContainerID) bool { return x != nil && x.promotions[id] != nil }

// Ended forgets the promotion of a container that has it, or has ended.
func (x *Mix) Ended(id creel.ContainerID) {
	if x != nil {
		delete(x.promotions, id)
	}
}

// Wants returns the promotions to request now, in the order of their containers.
func (x *Mix) Wants(now time.Time) (out []*pb.UpdateContainerRequestProto) {
	if x == nil {
		return nil
	}
	for _, id := range slices.SortedFunc(maps.Keys(x.promotions), creel.ContainerID.Compare) {
		p := x.promotions[id]
		if p.told || now.Before(p.due) {
			continue
		}
		p.due = now.Add(patience)
		out = append(out, &pb.UpdateContainerRequestProto{
			ContainerVersion: new(p.version), ContainerId: pb.FromContainerID(id),
			UpdateType:    pb.ContainerUpdateTypeProto_PROMOTE_EXECUTION_TYPE.Enum(),
			ExecutionType: pb.ExecutionTypeProto_GUARANTEED.Enum(),
		})
	}
	return out
}

// Answered takes the promotions and the rejections of an answer. It returns the containers whose new tokens go to
// their nodes.
func (x *Mix) Answered(answer *pb.AllocateResponseProto, now time.Time) (pass []*pb.ContainerProto) {
	if x == nil {
		return nil
	}
	for _, u := range answer.GetUpdatedContainers() {
		c := u.GetContainer()
		if p := x.promotions[pb.ToContainerID(c.GetId())]; p != nil {
			p.told, p.version = true, c.GetVersion()
			pass = append(pass, c)
		}
	}
	for _, e := range answer.GetUpdateErrors() {
		p := x.promotions[pb.ToContainerID(e.GetUpdateRequest().GetContainerId())]
		switch {
		case p == nil || p.told:
		case e.GetReason() == "INCORRECT_CONTAINER_VERSION_ERROR":
			p.version, p.due = e.GetCurrentContainerVersion(), time.Time{}
		default: // its node may not have registered yet
			p.due = now.Add(patience)
		}
	}
	return pass
}
