// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// Why is the present reason why an application waits, with the numbers.
type Why struct {
	Limit      Limit
	Where      creel.QueuePath     // the limit's queue
	User       string              // the limit's user
	Used       creel.Resource      // use under the limit
	Bound      creel.Resource      // the limit
	Need       creel.Resource      // of the checked ask
	Count, Max int                 // for limits in numbers of applications; checked nodes for LimitRoom
	Nodes      NodeCounts          // by the obstacle; zero unless no node fits
	Before     creel.ApplicationID // the earlier application that it waits for, if any
	Ask        AskView
	Text       string // one sentence
	Try        string // a change that would help
}

// Sentence returns the reason and the change that would help; "" if there is none.
func (w Why) Sentence() string {
	if w.Text == "" || w.Try == "" {
		return w.Text
	}
	return w.Text + " To change that: " + w.Try + "."
}

// On adds the label of the partition whose nodes were checked, "" for the default one.
func (w Why) On(label string) Why {
	if label != "" && w.Text != "" && w.Limit != LimitLabel {
		w.Text = "On the nodes of label " + label + ": " + w.Text
	}
	return w
}

// Line is an application in line for its activation.
type Line struct {
	User  string
	Queue creel.QueuePath // of the application
	AM    creel.Resource  // zero if the AM needs no container
	Limit Limit           // that stops its start: LimitParallelApps, LimitAM, LimitUserAM, or LimitNone
	Where creel.QueuePath // the limit's queue; "" for a limit on the user in the whole cluster

	Running, Most int            // for LimitParallelApps
	Used, Bound   creel.Resource // of AMs, for LimitAM and LimitUserAM
	InLine        int            // applications in line in the queue
}

// Why returns the reason why the application is not activated.
func (l *Line) Why() Why {
	w := Why{Limit: l.Limit, User: l.User, Where: l.Where, Need: l.AM}
	if w.Where == "" {
		w.Where = l.Queue
	}
	switch l.Limit {
	case LimitParallelApps:
		w.Count, w.Max = l.Running, max(l.Most, 0)
		whose, of := fmt.Sprintf("Queue %s", l.Where), "queue"
		if l.Where == "" {
			whose, of = "User "+l.User, "user"
		}
		w.Text = fmt.Sprintf("%s runs %d applications of at most %d at once.", whose, w.Count, w.Max)
		w.Try = "wait until one ends, or raise the " + of + "'s limit of parallel applications"
	case LimitAM, LimitUserAM:
		whose := "AMs"
		if l.Limit == LimitUserAM {
			whose += " of user " + l.User
		}
		w.Used, w.Bound = l.Used, l.Bound
		w.Text = fmt.Sprintf("%s in queue %s use %s of at most %s; this one needs %s.",
			whose, l.Where, w.Used, w.Bound, w.Need)
		w.Try = "wait until an application ends, ask for a smaller AM, or raise the queue's share for AMs " +
			"(maximum-am-resource-percent, maxAMShare)"
	default:
		// It may start, but others precede it in line.
		w.Limit = LimitOrder
		w.Text = fmt.Sprintf("Others are first in line in queue %s: %d applications wait to start.", l.Queue, l.InLine)
		w.Try = "wait until those before it have started, or raise its priority"
	}
	return w
}

// Stop is an ask that waits for a reservation or a limit, and so for no particular node.
type Stop struct {
	User  string
	Ask   AskView
	Limit Limit           // LimitReservation, LimitQueue or LimitUser
	Where creel.QueuePath // the limit's queue; of the application for LimitReservation

	Used, Bound creel.Resource // use under the limit; free resources of the reserved node, and the ask
	Node        creel.NodeID   // reserved for the ask
	Cap         *Cap           // the limit is a part of one in the federation
	Blocker     *Blocker       // the limit stops an earlier ask, which this one may not pass
}

// Cap is this subcluster's part of a limit in the federation.
type Cap struct {
	Part, Of creel.Resource
	Until    time.Time
	Expired  bool
	Short    creel.Resource // further amount that is requested
	Reason   string         // why it is not here
}

// Blocker is the earlier ask that waits for a queue's maximum.
type Blocker struct {
	App  creel.ApplicationID // zero for the same application
	Need creel.Resource
}

// Why returns the reason why the ask waits.
func (s *Stop) Why() Why {
	w := Why{
		Limit: s.Limit, Where: s.Where, User: s.User, Used: s.Used, Bound: s.Bound, Need: s.Ask.Resource, Ask: s.Ask,
	}
	switch {
	case s.Limit == LimitReservation:
		w.Text = fmt.Sprintf("Node %s is reserved for it and has %s free; it needs %s.", s.Node, w.Used, w.Need)
		w.Try = "wait until containers on that node end"
	case s.Cap != nil:
		s.capped(&w)
	case s.Blocker != nil:
		before := "another ask of its own"
		if b := s.Blocker.App; b != (creel.ApplicationID{}) {
			w.Before, before = b, b.String()
		}
		w.Text = fmt.Sprintf(
			"Queue %s uses %s of at most %s; %s is before it and waits there for %s, which smaller asks may not pass.",
			w.Where, w.Used, w.Bound, before, s.Blocker.Need)
		w.Try = "wait until containers of the queue end, or raise the queue's maximum"
	case s.Limit == LimitQueue:
		w.Text = fmt.Sprintf("Queue %s uses %s of at most %s; one more container needs %s.",
			w.Where, w.Used, w.Bound, w.Need)
		w.Try = "wait until containers of the queue end, move the application, or raise the queue's maximum"
	default:
		w.Text = fmt.Sprintf("User %s uses %s in queue %s, above the user limit of %s.",
			w.User, w.Used, w.Where, w.Bound)
		w.Try = "wait until containers of the user end, or raise the queue's user-limit-factor or " +
			"minimum-user-limit-percent"
	}
	return w
}

// capped describes an ask that a cap of its queue or its user stops.
func (s *Stop) capped(w *Why) {
	c, whose, in := s.Cap, fmt.Sprintf("Queue %s", s.Where), ""
	raise := "wait until containers of the queue end anywhere in the federation, or raise its maximum "
	if s.Limit == LimitUser {
		whose, in = "User "+s.User, fmt.Sprintf(" in queue %s", s.Where)
		raise = "wait until containers of the user end anywhere in the federation, or raise the queue's user_limit "
	}
	w.Bound = c.Part
	until := c.Until.UTC().Format(time.TimeOnly)
	w.Text = fmt.Sprintf(
		"%s may use %s here of %s in the federation%s until %s, and uses %s; one more container needs %s.",
		whose, bounds(c.Part), bounds(c.Of), in, until, w.Used, w.Need)
	if c.Expired {
		w.Bound = creel.Resource{}
		w.Text = fmt.Sprintf("The lease of %s for %s here of %s in the federation%s expired at %s and was not renewed.",
			lower(whose), bounds(c.Part), bounds(c.Of), in, until)
	}
	w.Text += asked(c.Short, c.Reason)
	w.Try = raise + "in the federation's queue tree"
}

// lower returns a sentence's first words for the middle of one.
func lower(s string) string { return string(s[0]|' ') + s[1:] }

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
