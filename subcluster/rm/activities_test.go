// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// asksOf lists the outcomes of an application's asks in a consideration, by priority.
func asksOf(on *explain.QueueOn, id creel.ApplicationID) (out []string) {
	for i := range on.Children {
		out = append(out, asksOf(&on.Children[i], id)...)
	}
	for _, a := range on.Apps {
		if a.App == id {
			for _, k := range a.Asks {
				out = append(out, fmt.Sprintf("%d %s %s", k.Priority, k.Outcome, k.Text))
			}
		}
	}
	return out
}

func TestActivitiesExplainEachAskOnTheNode(t *testing.T) {
	w := newWorld(t, nil)
	n1 := w.node("n1", 4096, 4, "")
	n2 := w.node("n2", 8192, 8, "")
	id := w.submit("alice", "default", nil)
	w.register(id)
	w.allocate(id, AllocateRequest{
		Asks: []Ask{
			ask(1, "*", 8192, 1, 2), ask(2, "n9", 1024, 1, 1), ask(2, "/default-rack", 1024, 1, 1), ask(2, "*", 0, 0, 0),
			ask(3, "*", 4096, 1, 3),
		},
		BlacklistAdd: []string{"n3"},
	})
	n3 := w.node("n3", 16384, 16, "")
	w.heartbeat(n1)
	if w.m.activities != nil {
		t.Fatal("recorded without a request")
	}
	for _, id := range []creel.NodeID{n1, n2, n3} {
		if last, err := w.m.RecordNode(w.now, id); last != nil || err != nil {
			t.Fatalf("%s before its consideration: %+v, %v", id, last, err)
		}
	}
	for _, c := range []struct {
		node creel.NodeID
		want []string
	}{
		{n1, []string{"1 REJECTED It needs", "3 SKIPPED It needs"}},
		{n3, []string{"1 REJECTED The node is on its blacklist.", "3 REJECTED The node is on its blacklist."}},
	} {
		w.heartbeat(c.node)
		last, err := w.m.RecordNode(w.now, c.node)
		if err != nil || last == nil || last.Node != c.node {
			t.Fatalf("%s: %+v, %v", c.node, last, err)
		}
		got := strings.Join(asksOf(&last.Root, id.Application), "\n")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", c.node, want, got)
			}
		}
	}
	w.audit()
}

func TestActivitiesExpire(t *testing.T) {
	w := newWorld(t, nil)
	n := w.node("n1", 4096, 4, "")
	id := w.submit("alice", "default", nil)
	w.register(id)
	w.asks(id, ask(1, "*", 8192, 1, 1))
	if _, err := w.m.RecordNode(w.now, n); err != nil {
		t.Fatal(err)
	}
	if err := w.m.RecordApp(w.now, id.Application, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	for range 6 { // the last two are after the recording
		w.heartbeat(n)
		w.now = w.now.Add(time.Second)
	}
	all, ok := w.m.AppActivities(id.Application)
	if !ok || len(all) != 4 || !all[0].At.After(all[3].At) {
		t.Errorf("recorded for 3 s: %v %+v", ok, all)
	}
	w.now = w.now.Add(activitiesKept - 10*time.Second)
	w.heartbeat(n)
	if last, err := w.m.RecordNode(w.now, n); last == nil || err != nil {
		t.Errorf("within its time: %+v, %v", last, err)
	}
	w.now = w.now.Add(activitiesKept + 10*time.Second)
	w.heartbeat(n)
	w.now = w.now.Add(activitiesKept + 10*time.Second)
	w.heartbeat(n)
	if w.m.activities != nil {
		t.Errorf("still recorded: %+v", w.m.activities)
	}
}

func TestActivitiesAreBounded(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxAllocation = creel.NewResource(4<<20, 8) })
	n := w.node("n1", 1<<20, 1000, "")
	id := w.submit("alice", "default", nil)
	w.register(id)
	w.asks(id, ask(1, "*", 2<<20, 1, 1))
	for i := range activitiesApps {
		if err := w.m.RecordApp(w.now, creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	other := creel.ApplicationID{ClusterTimestamp: 1, ID: 1000}
	if err := w.m.RecordApp(w.now, other, time.Hour); !errors.Is(err, creel.ErrBusy) {
		t.Errorf("one application more: %v", err)
	}
	for range activitiesOfApp + 5 {
		w.heartbeat(n)
	}
	if all, _ := w.m.AppActivities(id.Application); len(all) != activitiesOfApp {
		t.Errorf("%d considerations are kept", len(all))
	}
	var bulks []*Bulk
	for range activitiesBulks {
		b, err := w.m.RecordBulk(w.now, 2)
		if err != nil {
			t.Fatal(err)
		}
		bulks = append(bulks, b)
	}
	if _, err := w.m.RecordBulk(w.now, 2); !errors.Is(err, creel.ErrBusy) {
		t.Errorf("one bulk request more: %v", err)
	}
	for i := range 3 {
		if done, ready := w.m.Bulk(bulks[0]); ready != (i >= 2) || len(done) != min(i, 2) {
			t.Errorf("after %d considerations: %d, ready %v", i, len(done), ready)
		}
		w.heartbeat(n)
	}
	for _, b := range bulks {
		w.m.EndBulk(b)
	}
	for i := range activitiesNodes {
		if _, err := w.m.RecordNode(w.now, creel.NodeID{Host: "h", Port: int32(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.m.RecordNode(w.now, n); !errors.Is(err, creel.ErrBusy) {
		t.Errorf("one node more: %v", err)
	}
	for range activitiesGrants {
		w.asks(id, ask(2, "*", 128, 1, 2))
		if w.m.activities.kept >= activitiesGrants {
			break
		}
	}
	if w.m.activities.kept > activitiesGrants {
		t.Errorf("%d grants are kept", w.m.activities.kept)
	}
}
