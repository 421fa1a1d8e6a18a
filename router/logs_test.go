// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/rm/logaggregation"
)

// Whatever nodes report, wherever they are: the members' answers joined equal the answer of a ResourceManager that
// has all the nodes. A UAM that used nothing in its member does not count.
func TestJoinedLogsMatchOneResourceManager(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		room := &logaggregation.Messages{}
		members := make([]logaggregation.Logs, rapid.IntRange(1, 4).Draw(t, "members"))
		one := &logaggregation.Logs{}
		used := map[int]bool{0: true} // the AM is at home
		members[0].Ran(0)
		one.Ran(0)
		late := false
		report := func(i int, node int32, s creel.LogAggregationStatus) {
			members[i].Report(node, s, "", room)
			one.Report(node, s, "", room)
			used[i] = true
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			i := rapid.IntRange(0, len(members)-1).Draw(t, "member")
			node := int32(10*i) + rapid.Int32Range(0, 2).Draw(t, "node")
			if rapid.Bool().Draw(t, "runs") {
				members[i].Ran(node)
				one.Ran(node)
				used[i] = true
				continue
			}
			report(i, node, rapid.SampledFrom([]creel.LogAggregationStatus{
				creel.LogNotStart, creel.LogRunning, creel.LogRunningWithFailure, creel.LogSucceeded, creel.LogFailed,
			}).Draw(t, "status"))
		}
		ended := rapid.Bool().Draw(t, "ended")
		if ended {
			late = rapid.Bool().Draw(t, "late")
		}
		all := append([]*logaggregation.Logs{one}, nil...)
		for i := range members {
			all = append(all, &members[i])
		}
		for _, l := range all {
			if ended {
				l.End(room)
			}
			if late {
				l.TimeOut(room)
			}
		}
		now := time.UnixMilli(1_000_000)
		parts := make([]router.LogsPart, len(members))
		for i := range members {
			parts[i] = router.LogsPart{Status: members[i].Status(), Used: used[i]}
			if ended {
				parts[i].Ended = now
			}
		}
		if got := router.JoinLogs(parts, now); got != one.Status() {
			t.Fatalf("%v, want %v: %+v", got, one.Status(), parts)
		}
	})
}

// Statuses that a ResourceManager with all nodes would not report, since the members report less.
func TestJoinedLogsOfMembersThatSayLess(t *testing.T) {
	const (
		none, disabled, notStart = creel.LogAggregationStatus(0), creel.LogDisabled, creel.LogNotStart
		running, succeeded       = creel.LogRunning, creel.LogSucceeded
	)
	now := time.UnixMilli(10_000_000)
	part := func(s creel.LogAggregationStatus) router.LogsPart { return router.LogsPart{Status: s, Used: true} }
	over := func(s creel.LogAggregationStatus, ago time.Duration) router.LogsPart {
		return router.LogsPart{Status: s, Used: true, Ended: now.Add(-ago)}
	}
	for name, c := range map[string]struct {
		parts []router.LogsPart
		want  creel.LogAggregationStatus
	}{
		"no member gathers logs":                {[]router.LogsPart{part(disabled), part(disabled)}, disabled},
		"one does":                              {[]router.LogsPart{part(disabled), part(running)}, running},
		"a member does not say":                 {[]router.LogsPart{part(succeeded), part(none)}, succeeded},
		"none says":                             {[]router.LogsPart{part(none), part(none)}, none},
		"one of a later YARN":                   {[]router.LogsPart{part(succeeded), part(99)}, succeeded},
		"a UAM's nodes have not begun":          {[]router.LogsPart{part(succeeded), over(notStart, time.Minute)}, running},
		"its containers never began":            {[]router.LogsPart{part(succeeded), over(notStart, time.Hour)}, succeeded},
		"it has not ended, however long it ran": {[]router.LogsPart{part(succeeded), part(notStart)}, running},
		"it never had one":                      {[]router.LogsPart{part(succeeded), {Status: notStart}}, succeeded},
	} {
		if got := router.JoinLogs(c.parts, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
