// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// After a restart the tags of containers are those that nodes report, and a constraint
// counts them.
func TestTagsAreCountedAnewAfterARestart(t *testing.T) {
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
	apart := &sched.Constraint{Targets: []sched.Target{{Values: []string{"db"}}}}
	out, err := w.m.Allocate(w.now, attempt, &AllocateRequest{Scheduling: []SchedulingAsk{
		{Count: 2, Resource: creel.NewResource(1024, 1), Tags: []string{"db"}, Constraint: apart},
	}})
	if err != nil || len(out.Granted) != 1 || out.Granted[0].Node.Host != "m" || fmt.Sprint(out.Granted[0].Tags) != "[db]" {
		t.Fatalf("%+v %v", out, err)
	}
	why, _ := w.m.Why(id)
	if why.Limit != sched.LimitConstraint || !strings.Contains(why.Text, `"notin,node,db" refuses 2 of them`) ||
		why.Nodes.Refused != 2 {
		t.Errorf("%+v", why)
	}
	w.audit()
}

// What cannot be served is refused before anything of the call is done.
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
