// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Why returns the present reason why an application waits, with the numbers of the limit. It checks the limits in the
// machine's order and changes nothing. So the result is current, unlike a log line. ok is false if there is no such
// application.
func (r Reader) Why(id creel.ApplicationID) (Why, bool) {
	m := r.m
	a := m.apps.byID[id]
	if a == nil {
		return Why{}, false
	}
	_, waiting := a.Pending()
	w := Why{App: id, State: a.state.public(a.before), Waiting: waiting}
	w.User, w.Where = a.sub.User, a.path
	switch {
	case a.state.ended():
		w.Text = "It has ended: " + a.diag
		if a.lost.containers+a.lost.ams > 0 {
			w.Text += " " + a.lastLoss
		}
	case a.state == appNewSaving || a.state == appFinalSaving || a.state == appNew:
		w.Limit, w.Text = explain.LimitSaving, "Its state is being made durable."
	case a.hold.Claim > 0:
		w.Text = a.holdText()
	case !a.InQueue():
		w.Text = "It is being accepted."
	case !a.Activated() || waiting > 0:
		w.Why = m.sched.Explain().Why(&a.App)
	case a.current != nil && a.current.state != tRunning && a.current.state < tFinalSaving:
		w.Limit = explain.LimitUnregistered
		w.Text = fmt.Sprintf("Its AM is %s and has not registered yet.", a.current.state)
		w.Try = "look at the AM's log; it has " + units.Age(m.cfg.AMExpiry.Seconds()) + " from its launch to register"
	default:
		w.Text = "Nothing: it has all it asked for."
		if n := m.opportunistic.asked(a.current); n > 0 {
			w.Text = fmt.Sprintf("It asks for %d opportunistic containers, for which no node's queue is short enough.", n)
			if room, by := m.opportunistic.room(a); room == 0 {
				w.Text = fmt.Sprintf("It asks for %d opportunistic containers, but %s.", n, by)
			}
		}
	}
	if !a.state.ended() {
		w.Text = strings.TrimSpace(w.Text + r.whyPreempted(a) + r.whyBudget(a) + r.whyPlanned(a))
	}
	return w, true
}

// Waits returns the result of Why without text and numbers: the limit and its queue. A list of many applications
// shares one WaitScan.
func (r Reader) Waits(id creel.ApplicationID, l *explain.Scan) (explain.Limit, creel.QueuePath) {
	m := r.m
	a := m.apps.byID[id]
	if a == nil || a.state.ended() {
		return explain.LimitNone, ""
	}
	_, waiting := a.Pending()
	switch {
	case a.state == appNewSaving || a.state == appFinalSaving || a.state == appNew:
		return explain.LimitSaving, a.path
	case a.hold.Claim > 0 || !a.InQueue():
	case !a.Activated() || waiting > 0:
		return m.sched.Explain().Waits(&a.App, l)
	case a.current != nil && a.current.state != tRunning && a.current.state < tFinalSaving:
		return explain.LimitUnregistered, a.path
	}
	return explain.LimitNone, a.path
}

// WaitsSince returns the time at which an application's wait began, the zero time if it does not wait. It waits while
// it has no AM or has asks that are not granted. Without an AM it waits since its submission, or since its last attempt
// ended.
func (r Reader) WaitsSince(id creel.ApplicationID) time.Time {
	a := r.m.apps.byID[id]
	switch {
	case a == nil || a.state.ending():
		return time.Time{}
	case a.state == appRunning:
		since, _ := a.App.WaitsSince()
		return instant(since)
	}
	since := a.submitted
	for _, t := range a.attempts {
		since = max(since, t.finished)
	}
	return instant(since)
}

// whyPreempted returns the text about an application's pending preemption, its containers under notice, and its last
// loss; each sentence begins with a space.
func (r Reader) whyPreempted(a *app) string {
	m := r.m
	text := ""
	if of := m.sched.Preemption().TakenFor(&a.App); len(of) > 0 {
		loser := of[0].App
		n := 0
		for _, v := range of {
			if v.App == loser {
				n++
			}
		}
		where := fmt.Sprintf("In queue %s, which has %s more than its share,", loser.Queue().Path(), of[0].Over())
		if of[0].Within() {
			where = fmt.Sprintf("In queue %s", loser.Queue().Path())
		}
		text += fmt.Sprintf(" %s %d containers of %s are under notice, and will be killed at %s.",
			where, n, loser.ID(), instant(of[0].By).Format(time.TimeOnly))
	} else if a.wants() {
		if at, lacks, has := m.sched.Preemption().NextRound(a.Queue()); has {
			text += fmt.Sprintf(" Queue %s has %s less than its guarantee, which the preemption round at %s may take back.",
				a.path, lacks, instant(at).Format(time.TimeOnly))
		}
	}
	if t := a.current; t != nil && len(t.victims) > 0 {
		v := t.victims[0].extra.victim
		text += fmt.Sprintf(" %d of its containers must be released by %s: queue %s has less than its %s.",
			len(t.victims), instant(v.By).Format(time.TimeOnly), v.ForQueue(), v.Rule)
	}
	if a.lastLoss != "" {
		text += " " + a.lastLoss
	}
	return text
}
