// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"testing"
	"time"
)

// A plan is followed for its lease by the store's clock, and never while the view distrusts the store.
func TestPlanIsInViewForItsLease(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	plan, err := ParsePlan([]byte(`{"lease_ms":30000,"queues":[
		{"queue":"root.a.x","entitled":0.5,"wants":1,"members":[{"member":"sc-1","given":0.5}]},
		{"queue":"root.b.x"},{"queue":"root.b.y"}]}`), 7, at)
	if err != nil {
		t.Fatal(err)
	}
	record := func(heartbeat time.Time) []Record {
		return []Record{
			{Member: Member{ID: "sc-1"}, Registered: heartbeat, Heartbeat: heartbeat},
			{Member: Member{ID: "sc-2"}, Registered: heartbeat, Heartbeat: heartbeat},
		}
	}
	for _, c := range []struct {
		what   string
		after  time.Duration
		follow bool
	}{
		{"just written", 0, true},
		{"at the end of its lease", 30*time.Second - 1, true},
		{"after it", 30 * time.Second, false},
	} {
		now := at.Add(c.after)
		v := Build(nil, Records{Now: now, Members: record(now), Plan: plan}, now)
		if (v.Plan != nil) != c.follow {
			t.Errorf("%s: the view has plan %v", c.what, v.Plan)
		}
		u := Unreachable(v, "gone")
		if u.Plan != nil {
			t.Errorf("%s: it is followed though the store does not answer", c.what)
		}
		if next := Build(u, Records{Now: now, Members: record(now)}, now); !u.Freeze.Unread ||
			next.Freeze != nil && next.Freeze.Unread {
			t.Errorf("%s: unread %+v, then after a read %+v", c.what, u.Freeze, next.Freeze)
		}
	}
	first := Build(nil, Records{Now: at, Members: record(at), Plan: plan}, at)
	silent := Build(
		first,
		Records{Now: at.Add(29 * time.Second), Members: record(at.Add(-10 * time.Minute)), Plan: plan},
		at.Add(29*time.Second),
	)
	if silent.Freeze == nil || silent.Plan != nil {
		t.Errorf("all members are silent: freeze %v, plan %v", silent.Freeze, silent.Plan)
	}
	if q := plan.Queue("y"); q == nil || q.Queue != "root.b.y" {
		t.Errorf("a leaf's own name finds %v", q)
	}
	if q := plan.Queue("x"); q != nil {
		t.Errorf("a name of two leaves finds %v", q)
	}
	if q := plan.Queue("root.a.x"); q.Given("sc-1") != 0.5 || q.Given("sc-2") != 0 || !q.Contended() {
		t.Errorf("%+v", q)
	}
}
