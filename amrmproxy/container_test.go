// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Events in any order, of several attempts and epochs: a container is known while it lives and after it has ended,
// and ends once.
func TestContainersAreKnownAndEndOnce(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		m := &link{}
		c := newContainers()
		live, ended := map[creel.ContainerID]*heldContainer{}, map[creel.ContainerID]bool{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := creel.ContainerID{ID: int64(rapid.IntRange(0, 3).Draw(t, "epoch"))<<40 |
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

// Containers that are numbered without an end cost no memory, and those with gaps bounded memory:
// the oldest are forgotten, but for those that live.
func TestMemoryOfContainersIsBounded(t *testing.T) {
	m, c := &link{}, newContainers()
	id := func(n int64) creel.ContainerID { return creel.NewContainerID(creel.AttemptID{Attempt: 1}, 7, n) }
	for n := range int64(100_000) { // each ends a hundred later
		c.hold(id(1+n), &heldContainer{by: m})
		if n >= 100 {
			c.complete(id(1+n-100), c.live[id(1+n-100)])
		}
	}
	if runs := c.seen.attempts[0].runs; len(runs) != 1 || runs[0].last-runs[0].first != 99_999 {
		t.Errorf("of 100,000 containers one after the other there are the runs %v", runs)
	}
	const begin = 1_000_000
	for n := range int64(3 * mostRuns) {
		c.hold(id(begin+2*n), &heldContainer{by: m})
		if n > 0 {
			c.complete(id(begin+2*n), c.live[id(begin+2*n)])
		}
	}
	if n := len(c.seen.attempts[0].runs); n > mostRuns {
		t.Errorf("%d runs are kept, at most %d are wanted", n, mostRuns)
	}
	latest := id(begin + 2*(3*mostRuns-1))
	if c.seen.has(id(begin)) || !c.knows(id(begin)) || !c.knows(latest) || c.knows(id(begin+1)) || c.complete(latest, nil) {
		t.Errorf("of those with gaps the first, which lives, is in the set: %v, and known: %v; the last, which has ended, "+
			"is known: %v", c.seen.has(id(begin)), c.knows(id(begin)), c.knows(latest))
	}
	for n := range int32(3 * mostAttempts) {
		c.complete(creel.ContainerID{Attempt: creel.AttemptID{Attempt: 10 + n}, ID: 1}, nil)
	}
	if n := len(c.seen.attempts); n != mostAttempts || !c.knows(creel.ContainerID{Attempt: creel.AttemptID{Attempt: 9 + 3*mostAttempts}, ID: 1}) {
		t.Errorf("%d attempts are kept, and the last of them is not known", n)
	}
}

// A set of ids behaves like a map of them.
func TestASetOfIDs(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var s idSet
		want := map[creel.ContainerID]bool{}
		number := rapid.OneOf(rapid.Int64Range(0, 30), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}))
		for range rapid.IntRange(1, 100).Draw(t, "ids") {
			id := creel.ContainerID{ID: number.Draw(t, "number")}
			id.Attempt.Attempt = int32(rapid.IntRange(1, 3).Draw(t, "attempt"))
			if s.has(id) != want[id] {
				t.Fatalf("%v is in the set: %v", id, s.has(id))
			}
			s.add(id)
			want[id] = true
			for _, a := range s.attempts {
				for i, r := range a.runs {
					if r.last < r.first || i > 0 && r.first <= a.runs[i-1].last+1 {
						t.Fatalf("runs %v", a.runs)
					}
				}
			}
		}
		for id := range want {
			if !s.has(id) {
				t.Fatalf("%v is not in the set", id)
			}
		}
	})
}

// An ask equals the one before when only its number changed, whatever fields a later Hadoop adds.
func TestAskComparisonIgnoresNumber(t *testing.T) {
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
