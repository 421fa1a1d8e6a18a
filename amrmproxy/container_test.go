// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Whatever comes in whatever order, of more attempts and epochs than are told apart by
// their highest id: a container is known while it lives and when it has ended, and ends once.
func TestContainersAreKnownAndEndOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &member{}
		c := newContainers()
		live, ended := map[creel.ContainerID]*heldContainer{}, map[creel.ContainerID]bool{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := creel.ContainerID{ID: int64(rapid.IntRange(0, highestKept).Draw(t, "epoch"))<<40 |
				int64(rapid.IntRange(1, 20).Draw(t, "sequence"))}
			id.Attempt.Attempt = int32(rapid.IntRange(1, 2).Draw(t, "attempt"))
			if known, want := c.knows(id), live[id] != nil || ended[id]; known != want {
				t.Fatalf("%v is known: %v; it lives: %v, has ended: %v", id, known, live[id] != nil, ended[id])
			}
			if rapid.Bool().Draw(t, "granted") {
				if !c.knows(id) {
					live[id] = &heldContainer{by: m}
					c.hold(id, live[id])
				}
			} else {
				o := c.live[id]
				first := c.complete(id, o)
				if first == ended[id] || o != live[id] {
					t.Fatalf("%v ends for the first time: %v, before it had ended: %v; known of it: %v, want %v",
						id, first, ended[id], o, live[id])
				}
				delete(live, id)
				ended[id] = true
			}
			if m.live != len(live) {
				t.Fatalf("%d live of the member, want %d", m.live, len(live))
			}
		}
	})
}

// An ask is the one before when nothing but its number changed, whatever a later Hadoop adds.
func TestAnAskIsComparedInAllButItsNumber(t *testing.T) {
	ask := func(change func(*yarnpb.ResourceRequestProto)) *yarnpb.ResourceRequestProto {
		a := &yarnpb.ResourceRequestProto{
			Priority: yarnpb.FromPriority(1), ResourceName: proto.String("*"), NumContainers: proto.Int32(3),
			Capability: yarnpb.FromResource(creel.NewResource(1024, 1)),
		}
		change(a)
		return a
	}
	before := ask(func(*yarnpb.ResourceRequestProto) {})
	for what, c := range map[string]struct {
		change func(*yarnpb.ResourceRequestProto)
		same   bool
	}{
		"nothing":    {func(*yarnpb.ResourceRequestProto) {}, true},
		"its number": {func(a *yarnpb.ResourceRequestProto) { a.NumContainers = proto.Int32(4) }, true},
		"no number":  {func(a *yarnpb.ResourceRequestProto) { a.NumContainers = nil }, true},
		"its size":   {func(a *yarnpb.ResourceRequestProto) { a.Capability.VirtualCores = proto.Int32(2) }, false},
		"its label":  {func(a *yarnpb.ResourceRequestProto) { a.NodeLabelExpression = proto.String("") }, false},
		"an unknown field": {func(a *yarnpb.ResourceRequestProto) {
			a.ProtoReflect().SetUnknown(yarnpb.AppendNumber(nil, 999, 1))
		}, false},
	} {
		after := ask(c.change)
		number := after.NumContainers
		if got := sameBody(before, after); got != c.same || after.NumContainers != number || before.GetNumContainers() != 3 {
			t.Errorf("%s changed: the same is %v, want %v (asks then: %v, %v)", what, got, c.same, before, after)
		}
	}
}
