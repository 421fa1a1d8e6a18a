// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

var (
	need  = creel.NewResource(2048, 1)
	have  = creel.NewResource(7168, 7)
	bound = creel.NewResource(8192, 8)
	id    = creel.ApplicationID{ClusterTimestamp: 1, ID: 2}
	until = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
)

func TestSentencesOfEachWait(t *testing.T) {
	ask := AskView{Resource: need}
	part := &Cap{Part: bound, Of: creel.NewResource(65536, 1<<40), Until: until, Short: need, Reason: "others use it"}
	expired := *part
	expired.Expired, expired.Short = true, creel.Resource{}
	stop := func(limit Limit, change func(*Stop)) Why {
		s := &Stop{User: "ann", Ask: ask, Limit: limit, Where: "root.a", Used: have, Bound: bound}
		change(s)
		return s.Why()
	}
	line := func(limit Limit, where creel.QueuePath) Why {
		l := &Line{
			User: "ann", Queue: "root.a.b", AM: need, Limit: limit, Where: where, Running: 3, Most: 3, Used: have,
			Bound: bound, InLine: 5,
		}
		return l.Why()
	}
	for name, c := range map[string]struct {
		why   Why
		limit Limit
		where creel.QueuePath
		text  string
		try   string // part of it
	}{
		"parallel applications of a queue": {
			line(LimitParallelApps, "root.a"), LimitParallelApps, "root.a",
			"Queue root.a runs 3 applications of at most 3 at once.", "the queue's limit of parallel",
		},
		"parallel applications of a user": {
			line(LimitParallelApps, ""), LimitParallelApps, "root.a.b",
			"User ann runs 3 applications of at most 3 at once.", "the user's limit of parallel",
		},
		"AMs of a queue": {
			line(LimitAM, "root.a.b"), LimitAM, "root.a.b",
			"AMs in queue root.a.b use <memory:7168, vCores:7> of at most <memory:8192, vCores:8>; this one needs " +
				"<memory:2048, vCores:1>.", "maxAMShare",
		},
		"AMs of a user": {
			line(LimitUserAM, "root.a.b"), LimitUserAM, "root.a.b",
			"AMs of user ann in queue root.a.b use <memory:7168, vCores:7> of at most <memory:8192, vCores:8>; this one " +
				"needs <memory:2048, vCores:1>.", "ask for a smaller AM",
		},
		"others in line": {
			line(LimitNone, ""), LimitOrder, "root.a.b",
			"Others are first in line in queue root.a.b: 5 applications wait to start.", "raise its priority",
		},
		"reservation": {
			stop(LimitReservation, func(s *Stop) { s.Node = creel.NodeID{Host: "h", Port: 1} }), LimitReservation, "root.a",
			"Node h:1 is reserved for it and has <memory:7168, vCores:7> free; it needs <memory:2048, vCores:1>.",
			"containers on that node end",
		},
		"maximum of a queue": {
			stop(LimitQueue, func(*Stop) {}), LimitQueue, "root.a",
			"Queue root.a uses <memory:7168, vCores:7> of at most <memory:8192, vCores:8>; one more container needs " +
				"<memory:2048, vCores:1>.", "move the application",
		},
		"earlier ask of another application": {
			stop(LimitQueue, func(s *Stop) { s.Blocker = &Blocker{id, bound} }), LimitQueue, "root.a",
			"Queue root.a uses <memory:7168, vCores:7> of at most <memory:8192, vCores:8>; application_1_0002 is before " +
				"it and waits there for <memory:8192, vCores:8>, which smaller asks may not pass.", "raise the queue's maximum",
		},
		"earlier ask of the same application": {
			stop(LimitQueue, func(s *Stop) { s.Blocker = &Blocker{Need: bound} }), LimitQueue, "root.a",
			"Queue root.a uses <memory:7168, vCores:7> of at most <memory:8192, vCores:8>; another ask of its own is " +
				"before it and waits there for <memory:8192, vCores:8>, which smaller asks may not pass.",
			"raise the queue's maximum",
		},
		"limit of a user": {
			stop(LimitUser, func(*Stop) {}), LimitUser, "root.a",
			"User ann uses <memory:7168, vCores:7> in queue root.a, above the user limit of <memory:8192, vCores:8>.",
			"user-limit-factor",
		},
		"cap of a queue": {
			stop(LimitQueue, func(s *Stop) { s.Cap = part }), LimitQueue, "root.a",
			"Queue root.a may use <memory:8192, vCores:8> here of <memory:65536> in the federation until 03:04:05, and " +
				"uses <memory:7168, vCores:7>; one more container needs <memory:2048, vCores:1>. " +
				"<memory:2048, vCores:1> more is requested: others use it.", "raise its maximum in the federation's",
		},
		"expired cap of a queue": {
			stop(LimitQueue, func(s *Stop) { s.Cap = &expired }), LimitQueue, "root.a",
			"The lease of queue root.a for <memory:8192, vCores:8> here of <memory:65536> in the federation expired at " +
				"03:04:05 and was not renewed.", "anywhere in the federation",
		},
		"cap of a user": {
			stop(LimitUser, func(s *Stop) { s.Cap = part }), LimitUser, "root.a",
			"User ann may use <memory:8192, vCores:8> here of <memory:65536> in the federation in queue root.a until " +
				"03:04:05, and uses <memory:7168, vCores:7>; one more container needs <memory:2048, vCores:1>. " +
				"<memory:2048, vCores:1> more is requested: others use it.", "the queue's user_limit in the federation's",
		},
		"expired cap of a user": {
			stop(LimitUser, func(s *Stop) { s.Cap = &expired }), LimitUser, "root.a",
			"The lease of user ann for <memory:8192, vCores:8> here of <memory:65536> in the federation in queue root.a " +
				"expired at 03:04:05 and was not renewed.", "containers of the user end anywhere",
		},
	} {
		w := c.why
		if w.Limit != c.limit || w.Where != c.where || w.Text != c.text || !strings.Contains(w.Try, c.try) {
			t.Errorf("%s: %v at %s: %q, try %q; want %v at %s: %q, try %q",
				name, w.Limit, w.Where, w.Text, w.Try, c.limit, c.where, c.text, c.try)
		}
	}
	if w := stop(LimitQueue, func(s *Stop) { s.Cap = &expired }); !w.Bound.IsZero() {
		t.Errorf("an expired cap bounds by %v, want nothing", w.Bound)
	}
}

func TestLabelBeginsTheSentence(t *testing.T) {
	w := Why{Limit: LimitQueue, Text: "Full.", Try: "wait"}
	if got, want := w.On("gpu").Sentence(), "On the nodes of label gpu: Full. To change that: wait."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := w.On("").Text; got != "Full." {
		t.Errorf("in the default partition %q", got)
	}
	if w.Limit = LimitLabel; w.On("gpu").Text != "Full." {
		t.Errorf("a missing label is named twice: %q", w.On("gpu").Text)
	}
}

// passed is a node that passes all clauses.
var passed = Node{Open: true, Large: true, Room: true}

func tally(nodes ...Node) (t Tally) {
	for i := range nodes {
		t.Add(&nodes[i])
	}
	return t
}

func TestFirstClauseThatExcludesAllNodes(t *testing.T) {
	clause := &constraints.Constraint{Wrong: "unsupported"}
	closed, small, barred, refused, full, reserved := passed, passed, passed, passed, passed, passed
	closed.Open, small.Large, barred.Barred, refused.Refused = false, false, true, clause
	full.Room, reserved.Held, reserved.Kept = false, true, true
	for name, c := range map[string]struct {
		nodes  []Node
		label  string
		strict bool
		limit  Limit
		counts NodeCounts
		text   string // part of it
	}{
		"no node": {limit: LimitNoNode, text: "No node is running."},
		"closed":  {nodes: []Node{closed}, limit: LimitNoNode, text: "No node is running."},
		"label":   {nodes: []Node{closed}, label: "gpu", limit: LimitLabel, text: "has the label gpu"},
		"small": {
			nodes: []Node{closed, small, small}, limit: LimitNoNode, counts: NodeCounts{Open: 2, TooSmall: 2},
			text: "none of the 2 nodes has that much even when empty",
		},
		"blacklist": {
			nodes: []Node{small, barred}, limit: LimitBlacklist, counts: NodeCounts{Open: 2, TooSmall: 1, Blacklisted: 1},
			text: "All 1 nodes that are large enough",
		},
		"constraint": {
			nodes: []Node{barred, refused, refused}, limit: LimitConstraint,
			counts: NodeCounts{Open: 3, Blacklisted: 1, Refused: 2}, text: "refuses all 2 nodes that it may use",
		},
		"room": {
			nodes: []Node{refused, full, full}, limit: LimitRoom, counts: NodeCounts{Open: 3, Refused: 1, Full: 2},
			text: "none of the 2 nodes it may use has that much free (most free of each type: <memory:7168, vCores:7>). " +
				"Its placement constraint C refuses 1 others.",
		},
		"reserved": {
			nodes: []Node{full, reserved}, limit: LimitReservation, counts: NodeCounts{Open: 2, Full: 1, Reserved: 1},
			text: "The 1 nodes with room for <memory:2048, vCores:1> are reserved for others.",
		},
		"delay": {
			nodes: []Node{reserved, passed}, limit: LimitLocality, counts: NodeCounts{Open: 2, Reserved: 1, Elsewhere: 1},
			text: "2 other nodes have room. It goes further after 4 more opportunities.",
		},
		"strict": {
			nodes: []Node{passed}, strict: true, limit: LimitLocality, counts: NodeCounts{Open: 1, Elsewhere: 1},
			text: "(1 hosts, 2 racks), and none has room; 1 other nodes have.",
		},
	} {
		k := NoNode{
			User: "ann", Queue: "root.a", Label: c.label, Ask: AskView{Resource: need, Constraint: "C"},
			Tally: tally(c.nodes...), Free: have, Strict: c.strict, Hosts: 1, Racks: 2, Left: 4,
		}
		w := k.Why()
		if w.Limit != c.limit || w.Nodes != c.counts || !strings.Contains(w.Text, c.text) || w.Try == "" {
			t.Errorf("%s: %v, %+v, %q, try %q; want %v, %+v, %q", name, w.Limit, w.Nodes, w.Text, w.Try,
				c.limit, c.counts, c.text)
		}
		var s Scan
		if got := s.Limit(c.label, nil, true, func() Tally { return k.Tally }); got != w.Limit {
			t.Errorf("%s: a list says %v, why says %v", name, got, w.Limit)
		}
	}
}

func TestScanCountsNodesOncePerSize(t *testing.T) {
	var s Scan
	counts := 0
	count := func() Tally { counts++; return tally(passed) }
	sizes := [2]amounts.Size{}
	for range 3 {
		s.Limit("", &sizes[0], true, count)
		s.Limit("", &sizes[1], true, count)
		s.Limit("gpu", &sizes[0], true, count)
	}
	if counts != 3 {
		t.Errorf("nodes are counted %d times for 2 sizes and 2 partitions, want 3", counts)
	}
	for range mostTallies {
		s.Limit("", &sizes[0], false, count)
	}
	if counts != mostTallies {
		t.Errorf("nodes are counted %d times, want %d", counts, mostTallies)
	}
	if got := s.Limit("", &sizes[0], false, count); got != LimitNodes {
		t.Errorf("after %d scans %v, want %v", mostTallies, got, LimitNodes)
	}
	if got := s.Limit("", &sizes[0], true, count); got != LimitLocality {
		t.Errorf("a counted size has %v, want %v", got, LimitLocality)
	}
}
