// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// A drain is done when the member reports that nothing is left, and reports it late enough to include all work that
// was on its way when the drain began.
func TestADrainIsDoneWhenNothingIsLeft(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	view := func(line string, state subcluster.State, after time.Duration, running int64) *operator.DrainProgress {
		m := subcluster.Status{Member: subcluster.Member{ID: "a"}, Draining: line, State: state, Since: began}
		m.Load.Metrics.AppsRunning = running
		v := subcluster.NewView(began.Add(after), []subcluster.Status{m}, nil)
		return operator.DrainOf(v, &v.Members[0])
	}
	const draining = subcluster.StateDraining
	if d := view("", subcluster.StateActive, time.Hour, 0); d != nil {
		t.Errorf("nobody drains it: %+v", d)
	}
	for what, c := range map[string]struct {
		got  *operator.DrainProgress
		want operator.DrainProgress
	}{
		"just begun":         {view("finish, by ann: disks", draining, time.Second, 0), operator.DrainProgress{Mode: "finish", By: "ann", Reason: "disks"}},
		"something runs":     {view("finish, by ann", draining, time.Hour, 2), operator.DrainProgress{Mode: "finish", By: "ann", Running: 2}},
		"nothing is left":    {view("stop: a: b", draining, time.Hour, 0), operator.DrainProgress{Mode: "stop", Reason: "a: b", Done: true}},
		"it fell silent":     {view("stop", subcluster.StateSuspect, time.Hour, 0), operator.DrainProgress{Mode: "stop"}},
		"somebody else's":    {view("by hand: x", draining, time.Hour, 0), operator.DrainProgress{Mode: "stop", Reason: "by hand: x", Done: true}},
		"by moving":          {view("move, by ann: disks", draining, time.Hour, 1), operator.DrainProgress{Mode: "move", By: "ann", Reason: "disks", Running: 1}},
		"a mode not of ours": {view("leap, by ann", draining, time.Hour, 1), operator.DrainProgress{Mode: "stop", Reason: "leap, by ann", Running: 1}},
	} {
		if *c.got != c.want {
			t.Errorf("%s: %+v, want %+v", what, *c.got, c.want)
		}
	}
}

// A removal is noted, so that applications with their home there are forgotten if the member does not return.
func TestARemovedMemberIsNoted(t *testing.T) {
	ctx := t.Context()
	s := memory.New(memory.NewState("test", nil), time.Now)
	m := subcluster.Member{ID: "sc-1", Epoch: 1, Addresses: subcluster.Addresses{
		Client: "h:1", Scheduler: "h:2", Admin: "h:3", Web: "http://h:4",
	}}
	if err := s.Register(ctx, m); err != nil {
		t.Fatal(err)
	}
	o := operator.New(operator.Config{View: func() *subcluster.View { return nil }, Store: s})
	if err := s.Deregister(ctx, "sc-1", 1); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is a repeat
		if err := o.Remove(ctx, "ann", "sc-1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Remove(ctx, "ann", "sc-2"); !errors.Is(err, creel.ErrSubclusterNotFound) {
		t.Errorf("one that never was is removed: %v", err)
	}
	// One that an earlier creel removed, which noted nothing.
	home := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	if _, _, err := s.Claim(ctx, home, "sc-3", nil); err != nil {
		t.Fatal(err)
	}
	if err := o.Remove(ctx, "ann", "sc-3"); err != nil {
		t.Error(err)
	}
	if set, err := s.Documents(ctx, "removed"); err != nil || len(set.Documents) != 2 || set.Documents[1].Name != "sc-3" {
		t.Errorf("noted are %+v, %v", set.Documents, err)
	}
}
