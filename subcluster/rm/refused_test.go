// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// The first record of an application that its queue rejects is its end: after a crash before any further record it
// is still listed as failed, for the same reason, although its queue would accept it by then.
func TestRefusalSurvivesRestart(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	for _, tc := range []struct{ name, queue, why string }{
		{
			"below a legacy managed parent", "root.managed.ann",
			"Application application_1_0007 submission by user ann to specified queue : root.managed.ann is prohibited. " +
				"Verify automatic queue mapping for user exists in yarn.scheduler.capacity.queue-mappings",
		},
		{
			"below a parent that makes none", "root.fixed.ann",
			"Application application_1_0007 submitted by user ann to unknown queue: root.fixed.ann",
		},
		{
			"to a parent", "root.fixed",
			"Application application_1_0007 submitted by user ann to non-leaf queue: root.fixed",
		},
		{
			"to a stopped queue", "root.stopped",
			"Queue root.stopped is STOPPED. Cannot accept submission of application: application_1_0007",
		},
		{
			"to a full queue", "root.full",
			"Queue root.full already has 1 applications, cannot accept submission of application: application_1_0007",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := start
			machine := func(before bool) *Machine {
				conf := Defaults()
				conf.ClusterTimestamp, conf.Volatile = 1, false
				managed := queues.Queue{Name: "managed", Capacity: queues.PercentOf(25), AutoCreate: &queues.AutoCreate{
					Depth: 1, Managed: before, Leaf: queues.Queue{Capacity: queues.PercentOf(20)},
				}}
				leaf := func(name string) queues.Queue {
					return queues.Queue{Name: name, Capacity: queues.PercentOf(25)}
				}
				fixed, stopped, full := leaf("fixed"), leaf("stopped"), leaf("full")
				if before {
					stopped.State, full.MaxApps = creel.QueueStopped, 1
					fixed.Children = []queues.Queue{{Name: "x", Capacity: queues.PercentOf(100)}}
				} else {
					fixed.AutoCreate = &queues.AutoCreate{Depth: 1, Leaf: queues.Queue{UserFactor: 1}}
				}
				conf.Queues.Root.Children = []queues.Queue{managed, fixed, stopped, full}
				m, err := New(conf)
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			submit := func(m *Machine, id creel.ApplicationID) {
				t.Helper()
				if err := m.Submit(now, &Submission{
					ID: id, User: "ann", Queue: tc.queue, AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1)},
				}); err != nil {
					t.Fatal(err)
				}
			}
			k := &fakeJournal{apps: map[creel.ApplicationID]AppRecord{}}
			m := machine(true)
			if tc.queue == "root.full" {
				submit(m, creel.ApplicationID{ClusterTimestamp: 1, ID: 1})
				k.take(now, m)
			}
			submit(m, id)
			k.take(now, m) // what follows is lost
			told, _ := m.App(id)

			now = now.Add(time.Minute)
			next, r := machine(false), &Recover{}
			for _, a := range k.apps {
				r.Apps = append(r.Apps, a)
			}
			if err := next.Recover(now, r); err != nil {
				t.Fatal(err)
			}
			for _, v := range []AppView{told, mustApp(t, next, id)} {
				if v.State != creel.AppFailed || v.Final != creel.FinalFailed || v.Diagnostics != tc.why {
					t.Errorf("it is %s, %s: %q, want %q", v.State, v.Final, v.Diagnostics, tc.why)
				}
			}
			if err := next.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A submission that is rejected creates no queue. Else users without a right could fill the limit of
// queues that are created on demand.
func TestRejectedSubmissionCreatesNoQueue(t *testing.T) {
	conf := Defaults()
	conf.ClusterTimestamp, conf.ACLs = 1, true
	conf.Queues.Root.Submit, conf.Queues.Root.Admin = queues.ACL{Users: []string{"ann"}}, queues.ACL{}
	conf.Queues.Root.Children = []queues.Queue{{
		Name: "made", Capacity: queues.PercentOf(100), AutoCreate: &queues.AutoCreate{Depth: 2},
	}}
	m, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	submit := func(n int32, user string, memory int64) error {
		return m.Submit(start, &Submission{
			ID: creel.ApplicationID{ClusterTimestamp: 1, ID: n}, User: user, Queue: "root.made.team.x",
			AM: Ask{ResourceName: "*", Resource: creel.NewResource(memory, 1)},
		})
	}
	there := func(queue string) bool { return m.sched.Tree().Find(queue) != nil }
	if err := submit(1, "bob", 1024); !errors.Is(err, creel.ErrNotPermitted) || there("root.made.team") {
		t.Errorf("without a right: %v, the queue exists: %t", err, there("root.made.team"))
	}
	if err := submit(2, "ann", 1<<40); err == nil || there("root.made.team") {
		t.Errorf("with a container too large: %v, the queue exists: %t", err, there("root.made.team"))
	}
	if err := submit(3, "ann", 1024); err != nil || !there("root.made.team.x") {
		t.Errorf("with a right: %v, the queue exists: %t", err, there("root.made.team.x"))
	}
	if err := submit(4, "bob", 1024); !errors.Is(err, creel.ErrNotPermitted) || !there("root.made.team.x") {
		t.Errorf("to a queue that exists: %v, it exists: %t", err, there("root.made.team.x"))
	}
	if err := m.Audit(); err != nil {
		t.Error(err)
	}
}

func mustApp(t *testing.T, m *Machine, id creel.ApplicationID) AppView {
	t.Helper()
	v, there := m.App(id)
	if !there {
		t.Fatalf("%s is not listed", id)
	}
	return v
}
