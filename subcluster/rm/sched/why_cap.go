// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// whyCap describes an ask that a queue's cap stops.
func (e Explainer) whyCap(q *Queue, need creel.Resource, w *Why) {
	c := q.cap
	have := q.used
	have.Add(&q.held)
	w.Used, w.Bound = e.part.sizes.Resource(&have), c.Cap
	w.Text = fmt.Sprintf(
		"Queue %s may use %s here of %s in the federation until %s, and uses %s; one more container needs %s.",
		q.path, bounds(c.Cap), bounds(c.Maximum), c.Until.UTC().Format(time.TimeOnly), w.Used, need)
	if c.Lease.Expired(e.part.now) {
		w.Bound = creel.Resource{}
		w.Text = fmt.Sprintf(
			"The lease of queue %s for %s here of %s in the federation expired at %s and was not renewed.",
			q.path, bounds(c.Cap), bounds(c.Maximum), c.Until.UTC().Format(time.TimeOnly))
	}
	w.Text += asked(c.Short, c.Reason)
	w.Try = "wait until containers of the queue end anywhere in the federation, or raise its maximum " +
		"in the federation's queue tree"
}

// whyUserCap describes an ask that its user's cap stops.
func (e Explainer) whyUserCap(u *user, need creel.Resource, w *Why) {
	c := u.q.leaf.caps
	k, hot := c.Users[u.name]
	if !hot {
		k = c.Each
	}
	w.Used, w.Bound = e.part.sizes.Resource(&u.used), k.Cap
	w.Text = fmt.Sprintf(
		"User %s may use %s here of %s in the federation in queue %s until %s, and uses %s; one more container needs %s.",
		u.name, bounds(k.Cap), bounds(c.Limit), u.q.path, k.Until.UTC().Format(time.TimeOnly), w.Used, need)
	if e.part.now >= k.Until.UnixNano() {
		w.Bound = creel.Resource{}
		w.Text = fmt.Sprintf(
			"The lease of user %s for %s here of %s in the federation in queue %s expired at %s and was not renewed.",
			u.name, bounds(k.Cap), bounds(c.Limit), u.q.path, k.Until.UTC().Format(time.TimeOnly))
	}
	w.Text += asked(k.Short, k.Reason)
	w.Try = "wait until containers of the user end anywhere in the federation, or raise the queue's user_limit " +
		"in the federation's queue tree"
}

// bounds formats an amount, without vcores if they are unlimited: more than any cluster has.
func bounds(r creel.Resource) string {
	if r.VCores >= 1<<40 {
		return fmt.Sprintf("<memory:%d>", r.MemoryMB)
	}
	return r.String()
}

// asked formats the further amount that is requested for a cap.
func asked(short creel.Resource, reason string) string {
	if short.IsZero() {
		return ""
	}
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Sprintf(" %s more is requested%s.", short, reason)
}
