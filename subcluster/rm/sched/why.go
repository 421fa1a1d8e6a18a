// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
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

// Why returns the reason why an application in a queue waits, with the numbers of the limit. It checks the limits in
// the scheduler's order and changes nothing. So the result is current, unlike a log line. If the scheduler delays
// nothing, it returns LimitNone and no text.
func (e Explainer) Why(a *App) Why {
	w := Why{User: a.user.name, Where: a.queue.path}
	switch {
	case !a.activated:
		e.whyNotActive(a, &w)
	case a.pendingCount > 0:
		e.whyWaiting(a, &w)
	default:
		for _, x := range a.parts {
			if x.pendingCount > 0 {
				x.queue.part.explain().whyWaiting(x, &w)
				return x.queue.part.explain().ofPartition(w)
			}
		}
	}
	return w
}

// ofPartition adds the partition whose nodes were checked.
func (e Explainer) ofPartition(w Why) Why {
	if e.part.label != "" && w.Text != "" && w.Limit != LimitLabel {
		w.Text = "On the nodes of label " + e.part.label + ": " + w.Text
	}
	return w
}

func (e Explainer) whyNotActive(a *App, w *Why) {
	part := e.part
	limit, q := part.cluster.line.mayActivate(a, inViews)
	w.Limit = limit
	if a.amSize != nil {
		w.Need = a.amSize.Resource
	}
	if q != nil {
		w.Where = q.path
	}
	switch limit {
	case LimitParallelApps:
		if q != nil {
			w.Count, w.Max = q.apps.running, max(q.settings.maxRunning, 0)
			w.Text = fmt.Sprintf("Queue %s runs %d applications of at most %d at once.", q.path, w.Count, w.Max)
			w.Try = "wait until one ends, or raise the queue's limit of parallel applications"
			return
		}
		w.Count, w.Max = part.cluster.line.runningOf(a.user.name), max(part.cluster.line.userMaxApps(a.user.name), 0)
		w.Text = fmt.Sprintf("User %s runs %d applications of at most %d at once.", a.user.name, w.Count, w.Max)
		w.Try = "wait until one ends, or raise the user's limit of parallel applications"
	case LimitAM, LimitUserAM:
		p := q.part
		if a.amPart != nil {
			a = a.amPart
		}
		all, one := q.amLimit(a.user, inViews)
		used, who, bound := q.leaf.amUsed, "AMs in queue "+string(q.path), all
		if limit == LimitUserAM {
			used, who, bound = a.user.amUsed, "AMs of user "+a.user.name+" in queue "+string(q.path), one
		}
		w.Used, w.Bound = part.sizes.Resource(&used), part.sizes.Resource(&bound)
		w.Text = fmt.Sprintf("%s use %s of at most %s; this one needs %s.", who, w.Used, w.Bound, w.Need)
		w.Try = "wait until an application ends, ask for a smaller AM, or raise the queue's share for AMs (maximum-am-resource-percent, maxAMShare)"
		*w = p.explain().ofPartition(*w)
	default:
		// It may start, but others precede it in line.
		w.Limit, w.Text = LimitOrder, fmt.Sprintf(
			"Others are first in line in queue %s: %d applications wait to start.",
			a.queue.path,
			a.queue.leaf.pendingApps,
		)
		w.Try = "wait until those before it have started, or raise its priority"
	}
}

func (e Explainer) whyWaiting(a *App, w *Why) {
	if k := a.firstWaiting(); k != nil {
		e.whyAsk(a, k, w)
	}
}

// firstWaiting is the first outstanding ask, nil for none.
func (a *App) firstWaiting() *Ask {
	for _, k := range a.asks {
		if k.count > 0 && k.size != nil {
			return k
		}
	}
	return nil
}

// whyAsk explains the first outstanding ask.
func (e Explainer) whyAsk(a *App, k *Ask, w *Why) {
	if !e.whyLimited(a, k, w) {
		e.whyNoNode(a, k, w)
	}
}

// whyLimited explains an ask that waits for a reservation or a limit, and so for no particular node. It reports whether
// the ask does.
func (e Explainer) whyLimited(a *App, k *Ask, w *Why) bool {
	p := e.part
	w.Ask, w.Need = k.view(), k.size.Resource
	if k.hold != nil {
		n := k.hold.node
		w.Limit, w.Used, w.Bound = LimitReservation, p.sizes.Resource(&n.free), k.size.Resource
		w.Text = fmt.Sprintf("Node %s is reserved for it and has %s free; it needs %s.", n.id, w.Used, w.Need)
		w.Try = "wait until containers on that node end"
		return true
	}
	if v := a.admit(k.size, nil); v.limit != LimitNone {
		w.Limit, w.Where = v.limit, v.where.path
		if v.limit == LimitQueue && v.where.bounds.cap != nil {
			have := v.where.reserved.and(&v.where.used)
			if !v.where.bounds.cap.Lease.Admits(&p.sizes, p.now, &have, &k.size.V) {
				e.whyCap(v.where, w.Need, w)
				return true
			}
		}
		if v.limit == LimitQueue {
			have := v.where.reserved.and(&v.where.used)
			w.Used, w.Bound = p.sizes.Resource(&have), p.sizes.Resource(&v.where.bounds.max)
			w.Text = fmt.Sprintf(
				"Queue %s uses %s of at most %s; one more container needs %s.",
				v.where.path,
				w.Used,
				w.Bound,
				w.Need,
			)
			w.Try = "wait until containers of the queue end, move the application, or raise the queue's maximum"
			return true
		}
		if !a.user.underCap(&k.size.V) && p.policy.userAdmits(p, a.user) {
			e.whyUserCap(a.user, w.Need, w)
			return true
		}
		limit, _ := p.policy.userLimit(p, a.user)
		w.Used, w.Bound = p.sizes.Resource(&a.user.used), p.sizes.Resource(&limit)
		w.Text = fmt.Sprintf(
			"User %s uses %s in queue %s, above the user limit of %s.",
			a.user.name,
			w.Used,
			v.where.path,
			w.Bound,
		)
		w.Try = "wait until containers of the user end, or raise the queue's user-limit-factor or minimum-user-limit-percent"
		return true
	}
	if q := e.heldAt(a, k); q != nil {
		have, b := q.reserved.and(&q.used), q.stopped.blocker
		w.Limit, w.Where, w.Used, w.Bound = LimitQueue, q.path, p.sizes.Resource(&have), p.sizes.Resource(&q.bounds.max)
		before := "another ask of its own"
		if b.app.id != a.id {
			w.Before, before = b.app.id, b.app.id.String()
		}
		w.Text = fmt.Sprintf(
			"Queue %s uses %s of at most %s; %s is before it and waits there for %s, which smaller asks may not pass.",
			q.path, w.Used, w.Bound, before, b.size.Resource,
		)
		w.Try = "wait until containers of the queue end, or raise the queue's maximum"
		return true
	}
	return false
}

// heldAt returns the queue whose maximum an earlier ask waits for, which k may not pass; nil for none.
func (e Explainer) heldAt(a *App, k *Ask) *Queue {
	for q := a.queue; q != nil; q = q.parent {
		if b := q.stopped.blocker; b != nil && b != k && b.waitsFor(q) {
			return q
		}
	}
	return nil
}

// nodeTally counts the nodes that pass each clause; held nodes passed all.
type nodeTally struct{ takes, large, allowed, admitted, room, held int }

// NodeCounts counts nodes by the first clause that excludes an ask.
type NodeCounts struct {
	Open                  int // nodes that accept containers at all
	TooSmall, Blacklisted int // even when empty; by the application
	Refused               int // by its placement constraint
	Full                  int // now
	Reserved, Elsewhere   int // enough free, but held for others; or not where the ask wants to be
}

// tally checks every node for an ask. best is the largest free amount; refused counts nodes by the clause of a
// constraint that excludes them.
func (e Explainer) tally(a *App, k *Ask, best *amounts.Vec, refused map[*constraints.Constraint]int) (t nodeTally) {
	p := e.part
	for _, n := range p.nodes.All() {
		if n == nil || n.use != Open {
			continue
		}
		t.takes++
		best.Max(&n.free)
		if !p.sizes.Fits(&k.size.V, &n.total) {
			continue
		}
		t.large++
		if k.app.black.bars(n) {
			continue
		}
		t.allowed++
		if k.want != nil {
			if c := p.tags.refused(k, n); c != nil {
				refused[c]++
				continue
			}
		}
		t.admitted++
		if !p.sizes.Fits(&k.size.V, &n.free) {
			continue
		}
		t.room++
		if n.hold != nil {
			t.held++
		}
	}
	return t
}

// limit is the first clause that no node passes.
func (t nodeTally) limit(label string) Limit {
	switch {
	case t.takes == 0 && label != "":
		return LimitLabel
	case t.large == 0:
		return LimitNoNode
	case t.allowed == 0:
		return LimitBlacklist
	case t.admitted == 0:
		return LimitConstraint
	case t.room == 0:
		return LimitRoom
	case t.held == t.room:
		return LimitReservation
	}
	return LimitLocality
}

func (e Explainer) whyNoNode(a *App, k *Ask, w *Why) {
	p := e.part
	best, refused := amounts.Vec{}, map[*constraints.Constraint]int{}
	t := e.tally(a, k, &best, refused)
	w.Used, w.Count, w.Max = p.sizes.Resource(&best), t.room, t.takes
	w.Nodes = NodeCounts{
		Open: t.takes, TooSmall: t.takes - t.large, Blacklisted: t.large - t.allowed, Full: t.admitted - t.room,
		Refused:  t.allowed - t.admitted,
		Reserved: t.held, Elsewhere: t.room - t.held,
	}
	w.Limit = t.limit(p.label)
	switch {
	case t.takes == 0 && p.label != "":
		w.Text = fmt.Sprintf("No running node has the label %s that it asks for.", p.label)
		w.Try = "give a node the label (yarn rmadmin -replaceLabelsOnNode), or ask without it"
	case t.takes == 0:
		w.Text, w.Try = "No node is running.", "start a NodeManager"
	case t.large == 0:
		w.Text = fmt.Sprintf("It needs %s; none of the %d nodes has that much even when empty.", w.Need, t.takes)
		w.Try = "ask for smaller containers or add larger nodes"
	case t.allowed == 0:
		w.Text = fmt.Sprintf("All %d nodes that are large enough are on its blacklist.", t.large)
		w.Try = "remove nodes from the blacklist"
	case t.admitted == 0:
		whyRefused(refused, t.allowed, w)
	case t.room == 0:
		w.Text = fmt.Sprintf(
			"It needs %s; none of the %d nodes it may use has that much free (most free of each type: %s).",
			w.Need,
			t.admitted,
			w.Used,
		)
		if n := t.allowed - t.admitted; n > 0 {
			w.Text += fmt.Sprintf(" Its placement constraint %s refuses %d others.", k.want.Constraint, n)
		}
		w.Try = "wait until containers end, or add nodes"
	case t.held == t.room:
		w.Text = fmt.Sprintf("The %d nodes with room for %s are reserved for others.", t.room, w.Need)
		w.Try = "wait for the reservations to be fulfilled"
	case k.strict:
		w.Text = fmt.Sprintf(
			"It takes only the places it names (%d hosts, %d racks), and none has room; %d other nodes have.",
			len(k.named.Hosts),
			len(k.named.Racks),
			t.room,
		)
		w.Try = "relax locality, or wait until containers there end"
	default:
		left := int64(0)
		if k.slot != 0 {
			left = k.relaxAt - p.delays.count
		}
		w.Text = fmt.Sprintf(
			"It waits for a node it names; %d other nodes have room. It goes further after %d more opportunities.",
			t.room,
			max(left, 0),
		)
		w.Try = "wait, or lower the locality delay"
	}
}

// whyRefused names the clause that excludes most of the nodes which an ask could use.
func whyRefused(by map[*constraints.Constraint]int, of int, out *Why) {
	worst := constraints.Worst(by)
	out.Text = fmt.Sprintf("Its placement constraint refuses all %d nodes that it may use: %q refuses %d of them.",
		of, worst, by[worst])
	if worst.Wrong != "" {
		out.Try = "ask by another constraint"
		return
	}
	out.Try = "wait until containers with the tags start or end, give a node the attribute, add nodes, " +
		"or ask by another constraint"
}

// whyCap describes an ask that a queue's cap stops.
func (e Explainer) whyCap(q *Queue, need creel.Resource, w *Why) {
	c := q.bounds.cap
	have := q.reserved.and(&q.used)
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
