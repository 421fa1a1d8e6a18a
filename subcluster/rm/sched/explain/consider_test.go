// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

func TestFirstObstacleOfAnAskOnANode(t *testing.T) {
	// Each case removes one obstacle of the case before it.
	k := AskAt{
		Priority: 7, AllocationRequestID: 8, Need: need, Free: have, Total: bound, Here: true,
		Stop: &Stop{Limit: LimitReservation, Ask: AskView{Resource: need}}, For: id, Strict: true,
	}
	n := &k.Node
	n.Barred, n.Held, n.Kept = true, true, true
	n.Refused = &constraints.Constraint{Wrong: "unsupported"}
	for _, c := range []struct {
		remove  func()
		outcome Outcome
		text    string
	}{
		{func() {}, Reserved, "The node is reserved for it and has <memory:7168, vCores:7> free"},
		{func() { k.Here = false }, Skipped, "is reserved for it"},
		{func() { k.Stop.Limit, k.Stop.Where = LimitQueue, "root.a" }, Rejected, "Queue root.a uses"},
		{func() { k.Stop = nil }, Rejected, "accepts no containers"},
		{func() { n.Open = true }, Rejected, "the node has <memory:8192, vCores:8> even when empty"},
		{func() { n.Large = true }, Rejected, "blacklist"},
		{func() { n.Barred = false }, Rejected, "refuses the node"},
		{func() { n.Refused = nil }, Skipped, "The node is reserved for application_1_0002."},
		{func() { n.Held = false }, Skipped, "kept for an ask of preemption"},
		{func() { n.Kept = false }, Skipped, "the node has <memory:7168, vCores:7> free"},
		{func() { n.Room = true }, Skipped, "takes only the places that it names"},
		{func() { k.Strict = false }, Skipped, "waits for a node that it names"},
		{func() { k.Reaches = true }, Skipped, "Others are before it"},
	} {
		c.remove()
		on := k.on()
		if on.Outcome != c.outcome || !strings.Contains(on.Text, c.text) {
			t.Errorf("%s: %q, want %s: %q", on.Outcome, on.Text, c.outcome, c.text)
		}
		if on.Priority != 7 || on.AllocationRequestID != 8 {
			t.Errorf("the outcome is of ask %d, %d", on.Priority, on.AllocationRequestID)
		}
	}
}

func TestQueueWithListedApplicationsIsAccepted(t *testing.T) {
	root := QueueAt{Path: "root", Children: []QueueAt{
		{Path: "root.idle"},
		{Path: "root.full", More: 2},
		{Path: "root.parent", Children: []QueueAt{{Path: "root.parent.leaf", More: 3, Apps: []AppAt{
			{App: id, Asks: make([]AskAt, 2), More: 4},
			{InLine: &Why{Text: "It is in line."}},
			{},
		}}}},
	}}
	on := root.On()
	leaf := on.Children[2].Children[0]
	for _, c := range []struct {
		q       QueueOn
		outcome Outcome
		text    string
	}{
		{on, Accepted, ""},
		{on.Children[0], Skipped, "Queue does not need more resource"},
		{on.Children[1], Skipped, "2 more waiting applications are not listed."},
		{on.Children[2], Accepted, ""},
		{leaf, Accepted, "3 more waiting applications are not listed."},
	} {
		if c.q.Outcome != c.outcome || c.q.Text != c.text {
			t.Errorf("%s: %s %q, want %s %q", c.q.Path, c.q.Outcome, c.q.Text, c.outcome, c.text)
		}
	}
	if a := leaf.Apps[0]; a.Outcome != Accepted || len(a.Asks) != 2 || a.Text != "4 more asks are not listed." {
		t.Errorf("an application with asks: %+v", a)
	}
	if a := leaf.Apps[1]; a.Outcome != Skipped || a.Text != "It is in line." {
		t.Errorf("an application in line: %+v", a)
	}
	if a := leaf.Apps[2]; a.Outcome != Skipped || a.Text != "" {
		t.Errorf("an application without asks: %+v", a)
	}
}
