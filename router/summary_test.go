// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// viewOf has members a, b, … in states, each with ten running applications.
func viewOf(states ...subcluster.State) *subcluster.View {
	var members []subcluster.Status
	for i, s := range states {
		m := subcluster.Status{Member: subcluster.Member{ID: creel.SubclusterID('a' + byte(i))}, State: s, Age: time.Minute}
		m.Load.Metrics.AppsRunning, m.Load.Metrics.ContainersPerSecond = 10, 4
		members = append(members, m)
	}
	return subcluster.NewView(time.Unix(1_800_000_000, 0), members, nil)
}

func summarize(view *subcluster.View) router.Summary {
	return new(router.Judge).Summarize(time.Time{}, view, router.Tally{})
}

func TestALostMembersFiguresAreInNoSum(t *testing.T) {
	const active, lost = subcluster.StateActive, subcluster.StateLost
	s := summarize(viewOf(active, lost, subcluster.StateSuspect, subcluster.StateDeregistered))
	if s.Sum.AppsRunning != 20 || len(s.Without) != 1 || s.Without[0].Member != "b" || s.Without[0].Age != time.Minute {
		t.Errorf("summed %d, without %v", s.Sum.AppsRunning, s.Without)
	}
	twice := viewOf(active, active) // four of b's ten are parts of applications whose home is a
	twice.Members[1].Load.UAMs = subcluster.UAMLoad{Running: 4}
	if s := summarize(twice); s.Sum.AppsRunning != 16 || !strings.Contains(s.Sentence, "16 applications run") {
		t.Errorf("an application counts where it is at home: %d, %q", s.Sum.AppsRunning, s.Sentence)
	}
	for said, want := range map[int64]int64{11: 10, math.MaxInt64: 10, math.MinInt64: 20, -1: 20} { // a limit that no member has
		twice.Members[1].Load.UAMs.Running = said
		if n := summarize(twice).Sum.AppsRunning; n != want {
			t.Errorf("%d UAMs of ten: %d applications, want %d", said, n, want)
		}
	}
	frozen := viewOf(active, lost)
	frozen.Freeze = &subcluster.Freeze{Reason: "it is dark"}
	for what, c := range map[string]struct {
		view  *subcluster.View
		state router.Health
		says  string
	}{
		"no view":    {nil, router.Bad, "has not read"},
		"nobody":     {viewOf(), router.Warn, "No subcluster has registered"},
		"all well":   {viewOf(active, active), router.Good, "All 2 members are well. 20 applications run"},
		"one lost":   {viewOf(active, lost), router.Bad, "b is lost; the sums are without it. 10 applications"},
		"many lost":  {viewOf(active, lost, lost, lost, lost, lost), router.Bad, "b, c, d and 2 more are lost"},
		"none alive": {viewOf(lost, lost), router.Bad, "None of 2 members"},
		"draining":   {viewOf(active, subcluster.StateDraining), router.Warn, "b is draining"},
		"frozen":     {frozen, router.Bad, "frozen: it is dark"},
	} {
		if s := summarize(c.view); s.State != c.state || !strings.Contains(s.Sentence, c.says) {
			t.Errorf("%s: %s, %q", what, s.State, s.Sentence)
		}
	}
}

// Members' metrics may sum to more than an int64, or less.
func TestSumsOfMembersDoNotWrap(t *testing.T) {
	view := viewOf(subcluster.StateActive, subcluster.StateActive, subcluster.StateActive)
	for i := range view.Members {
		m := &view.Members[i].Load.Metrics
		m.TotalMB, m.AvailableMB, m.ActiveNodes = math.MaxInt64, math.MinInt64, int64(i)
		m.AppsRunning = []int64{math.MaxInt64, 7, -3}[i]
	}
	s := summarize(view).Sum
	if s.TotalMB != math.MaxInt64 || s.AvailableMB != math.MinInt64 || s.ActiveNodes != 3 || s.AppsRunning != math.MaxInt64-3 {
		t.Errorf("%+v", s)
	}
}
