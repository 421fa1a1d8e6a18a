// SPDX-License-Identifier: Apache-2.0

package statestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

func TestJudgeAway(t *testing.T) {
	accepted := statestore.ReportedApplication{Attempt: 1}
	second := statestore.ReportedApplication{Attempt: 2}
	running := statestore.ReportedApplication{Attempt: 1, Running: true}
	ended := statestore.ReportedApplication{Attempt: 1, Ended: true}
	held := statestore.ReportedApplication{Attempt: 1, Held: 3}
	for _, c := range []struct {
		name     string
		answered bool
		home     *statestore.ReportedApplication
		away     statestore.ReportedApplication
		want     statestore.Away
	}{
		{"the home is silent", false, nil, running, statestore.AwayWait},
		{"the home does not know it", true, nil, accepted, statestore.AwayRehome},
		{"it has ended at its home", true, &ended, running, statestore.AwayEnd},
		{"both only accepted", true, &accepted, accepted, statestore.AwayEnd},
		{"both run", true, &running, running, statestore.AwayEnd},
		{"it runs at its home", true, &running, accepted, statestore.AwayEnd},
		{"it runs away, and was only accepted at its home", true, &accepted, running, statestore.AwayRehome},
		{"it runs away, and has a later attempt at its home", true, &second, running, statestore.AwayRehome},
		{"a later attempt away", true, &accepted, second, statestore.AwayRehome},
		{"its home holds it for a move", true, &held, accepted, statestore.AwayRehome},
	} {
		if got, why := statestore.JudgeAway(c.answered, c.home, c.away); got != c.want {
			t.Errorf("%s: %v (%s), want %v", c.name, got, why, c.want)
		}
	}
}

// Of a view and a store that went back: what the store lacks or has of an earlier version is written again.
func TestPutBack(t *testing.T) {
	policy := func(q creel.QueuePath, version int64, document string) subcluster.Policy {
		return subcluster.Policy{Queue: q, Version: version, Document: []byte(document), Author: "ann"}
	}
	at := time.Unix(1000, 0)
	member := func(id creel.SubclusterID, draining string, registered time.Time) subcluster.Record {
		return subcluster.Record{
			Member: subcluster.Member{ID: id}, Heartbeat: at, Registered: registered, Draining: draining,
		}
	}
	before := subcluster.Build(nil, subcluster.Records{
		Now: at,
		Members: []subcluster.Record{
			member("sc-drained", "by ann", at), member("sc-same", "by eve", at), member("sc-back", "", at),
			member("sc-new", "", at), member("sc-gone", "by bob", at),
		},
		Policies: []subcluster.Policy{
			policy("root.a", 5, "new"), policy("root.b", 2, "same"), policy("root.c", 6, "lost"),
			policy("root.d", 7, ""), policy("root.e", 3, "older"),
		},
	}, at)
	writes, drains := statestore.PutBack(before, subcluster.Records{
		Members: []subcluster.Record{
			member("sc-drained", "", at), member("sc-same", "by eve", at), member("sc-back", "by ann", at.Add(-time.Hour)),
			member("sc-new", "by an administrator, since", at.Add(time.Second)),
		},
		Policies: []subcluster.Policy{
			policy("root.a", 4, "old"), policy("root.b", 2, "same"), policy("root.d", 1, "removed since"),
			policy("root.e", 9, "written since"),
		},
	})
	got := ""
	for _, w := range writes {
		got += fmt.Sprintf("%s %d %q\n", w.Queue, w.Expect, w.Document)
	}
	const want = "root.a 4 \"new\"\nroot.c 0 \"lost\"\nroot.d 1 \"\"\n"
	if got != want {
		t.Errorf("policies put back:\n%swant\n%s", got, want)
	}
	const wantDrains = "map[sc-back: sc-drained:by ann sc-gone:by bob]"
	if got := fmt.Sprint(drains); got != wantDrains {
		t.Errorf("drains put back: %s, want %s", got, wantDrains)
	}
}
