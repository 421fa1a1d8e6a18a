// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// After a restart the tags of containers are those that nodes report, and a constraint
// counts them.
func TestTagsAreCountedAfterRestart(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	attempt := creel.AttemptID{Application: id, Attempt: 1}
	w := newWorld(t, func(c *Config) { c.Epoch, c.Constraints = 1, ConstraintsKept })
	err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  w.now, Queue: "root.default",
		Attempts: []AttemptRecord{{ID: attempt, Started: w.now, ExitStatus: creel.ExitInvalid}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Second)
	for i, host := range []string{"n", "m"} {
		r := &RegisterNode{ID: creel.NodeID{Host: host, Port: 1}, Resource: creel.NewResource(4096, 4)}
		if i == 0 {
			r.Containers = []NodeContainer{{
				ID: creel.ContainerID{Attempt: attempt, ID: 2}, Resource: creel.NewResource(1024, 1),
				State: creel.ContainerRunning, Created: w.now, Tags: []string{"db"},
			}}
		}
		if _, err := w.m.RegisterNode(w.now, r); err != nil {
			t.Fatal(err)
		}
	}
	n, _ := w.m.Node(creel.NodeID{Host: "n", Port: 1})
	if got := fmt.Sprint(n.Tags); got != "[{db 1}]" {
		t.Fatalf("tags on n: %s", got)
	}
	if _, err := w.m.RegisterAM(w.now, &RegisterAM{Attempt: attempt}); err != nil {
		t.Fatal(err)
	}
	apart := &constraints.Constraint{Targets: []constraints.Target{{Values: []string{"db"}}}}
	out, err := w.m.Allocate(w.now, attempt, &AllocateRequest{Scheduling: []SchedulingAsk{
		{Count: 2, Resource: creel.NewResource(1024, 1), Tags: []string{"db"}, Constraint: apart},
	}})
	if err != nil || len(out.Granted) != 1 || out.Granted[0].Node.Host != "m" || fmt.Sprint(out.Granted[0].Tags) != "[db]" {
		t.Fatalf("%+v %v", out, err)
	}
	why, _ := w.m.Why(id)
	if why.Limit != explain.LimitConstraint || !strings.Contains(why.Text, `"notin,node,db" refuses 2 of them`) ||
		why.Nodes.Refused != 2 {
		t.Errorf("%+v", why)
	}
	w.audit()
}

// An unservable request is rejected before any part of the call is applied.
func TestWrongSchedulingRequestsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, says string
		cfg        func(*Config)
		ask        SchedulingAsk
	}{
		{"disabled", "placement-constraints.handler is disabled", func(c *Config) { c.Constraints = ConstraintsOff }, SchedulingAsk{}},
		{"FairScheduler", "configured scheduler=FairScheduler cannot handle", func(c *Config) {
			c.Queues.Scheduler = queues.FairScheduler
		}, SchedulingAsk{}},
		{"opportunistic", "Only GUARANTEED", nil, SchedulingAsk{ExecutionType: creel.Opportunistic}},
		{"negative", "containers < 0", nil, SchedulingAsk{Count: -1}},
		{"too large", "Invalid resource request", nil, SchedulingAsk{Resource: creel.NewResource(1<<20, 1)}},
		{"label", "node label not enabled", nil, SchedulingAsk{Label: "gpu"}},
	} {
		w := newWorld(t, func(cfg *Config) {
			if cfg.Constraints = ConstraintsKept; c.cfg != nil {
				c.cfg(cfg)
			}
		})
		w.node("n", 4096, 4, "")
		id := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
		if err := w.m.Submit(w.now, &Submission{ID: id, User: "u", Queue: "default", Unmanaged: true}); err != nil {
			t.Fatal(err)
		}
		attempt := creel.AttemptID{Application: id, Attempt: 1}
		if _, err := w.m.RegisterAM(w.now, &RegisterAM{Attempt: attempt}); err != nil {
			t.Fatal(err)
		}
		_, err := w.m.Allocate(w.now, attempt, &AllocateRequest{Scheduling: []SchedulingAsk{c.ask}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// The processor takes the requests of one call as listed, whatever their priorities, or popular tags first; under the
// other handler priorities decide.
func TestTheOrderOfRequestsInOneCall(t *testing.T) {
	ask := func(key int64, priority int32, tag, not string) SchedulingAsk {
		return SchedulingAsk{
			AllocationRequestID: key, Priority: priority, Count: 1, Resource: creel.NewResource(1024, 1),
			Tags: []string{tag}, Constraint: &constraints.Constraint{Targets: []constraints.Target{{Values: []string{not}}}},
		}
	}
	list := []SchedulingAsk{ask(1, 2, "p", "q"), ask(2, 1, "q", "p"), ask(3, 1, "q", "p")}
	for want, change := range map[string]func(c *Config){
		"[1]":   func(c *Config) { c.Constraints = ConstraintsTried },
		"[2 3]": func(c *Config) { c.Constraints, c.PopularTagsFirst = ConstraintsTried, true },
		"[3 2]": func(c *Config) { c.Constraints = ConstraintsKept },
	} {
		w := newWorld(t, change)
		w.node("n", 8192, 8, "/r")
		request := list
		if want == "[3 2]" { // the last of the list first: it has a smaller key
			request = []SchedulingAsk{list[0], ask(3, 1, "q", "p"), ask(2, 1, "q", "p")}
			want = "[2 3]"
		}
		var got []int64
		for _, g := range w.allocate(w.unmanaged("u", "default"), AllocateRequest{Scheduling: request}).Granted {
			got = append(got, g.AllocationRequestID)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("granted %v, want %s", got, want)
		}
		w.audit()
	}
}

// A request with a constraint borrows of shared partitions as any other, where its
// constraint admits the node; its containers there count.
func TestRequestsWithConstraintsBorrow(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Labels, c.Constraints = LabelsByCall, ConstraintsKept })
	if err := w.m.AddLabels(w.now, []Label{{"x", true}, {"y", false}}); err != nil {
		t.Fatal(err)
	}
	w.node("plain", 4096, 4, "/r")
	var list []NodeLabels
	for host, label := range map[string]string{"exclusive": "x", "shared": "y", "also": "y"} {
		list = append(list, NodeLabels{w.node(host, 4096, 4, "/r"), []string{label}})
	}
	if err := w.m.ReplaceLabels(w.now, list, true); err != nil {
		t.Fatal(err)
	}
	apart := &constraints.Constraint{Targets: []constraints.Target{{Values: []string{"db"}}}}
	ask := SchedulingAsk{Count: 4, Resource: creel.NewResource(1024, 1), Tags: []string{"db"}, Constraint: apart}
	id := w.unmanaged("u", "default")
	hosts := map[string]int{}
	granted := w.allocate(id, AllocateRequest{Scheduling: []SchedulingAsk{ask}}).Granted
	for _, g := range granted {
		hosts[g.Node.Host]++
	}
	if fmt.Sprint(hosts) != "map[also:1 plain:1 shared:1]" {
		t.Errorf("four that must be apart are on %v", hosts)
	}
	w.audit()
	// One ends on a shared node: the fourth has a place.
	var again []Grant
	for _, g := range granted {
		if g.Node.Host == "shared" {
			again = w.allocate(id, AllocateRequest{Release: []creel.ContainerID{g.ID}}).Granted
		}
	}
	if len(again) != 1 || again[0].Node.Host != "shared" {
		t.Errorf("after one ended: %+v", again)
	}
	w.audit()
}

// Of thousands of requests in one call each is placed in its turn. Those that fit nowhere are rejected after Hadoop's
// number of calls, and a call with too many requests is rejected as a whole.
func TestManySchedulingRequestsInOneCall(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Constraints = ConstraintsTried })
	w.node("n", 1<<24, 4096, "/r")
	x := w.unmanaged("u", "default")
	const n = 3000
	var list []SchedulingAsk
	for i := range n {
		// Every second request needs the container of the previous one, which is there only if that was placed first.
		tag, near := fmt.Sprintf("t%d", i), (*constraints.Constraint)(nil)
		if i%2 == 1 {
			near = &constraints.Constraint{Targets: []constraints.Target{{Values: []string{list[i-1].Tags[0]}}}, Min: 1, Max: math.MaxInt32}
		}
		if i%3 == 0 && i%2 == 0 && i > 0 {
			near = &constraints.Constraint{Targets: []constraints.Target{{Values: []string{"nobody"}}}, Min: 1, Max: math.MaxInt32}
		}
		list = append(list, SchedulingAsk{
			Priority: 1, Tags: []string{tag}, Count: 1, Resource: creel.NewResource(1, 1), Constraint: near,
		})
	}
	out := w.allocate(x, AllocateRequest{Scheduling: list})
	granted := len(out.Granted)
	rejected := len(out.Rejected)
	for range 3 {
		out = w.allocate(x, AllocateRequest{})
		granted, rejected = granted+len(out.Granted), rejected+len(out.Rejected)
	}
	// Each independent request is followed by one that needs it.
	none := 2 * ((n - 1) / 6)
	if granted != n-none || rejected != none {
		t.Errorf("%d granted and %d rejected of %d, want %d and %d", granted, rejected, n, n-none, none)
	}
	w.audit()

	for len(list) <= 10_000 {
		list = append(list, list[:n]...)
	}
	_, err := w.m.Allocate(w.now, x, &AllocateRequest{ResponseID: out.ResponseID, Scheduling: list})
	if !errors.Is(err, creel.ErrInvalidResource) || !strings.Contains(err.Error(), "Too many scheduling requests") {
		t.Errorf("%d requests: %v", len(list), err)
	}
	if out = w.allocate(x, AllocateRequest{}); len(out.Granted) != 0 {
		t.Errorf("of a refused call %d are granted", len(out.Granted))
	}
}
