// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/subcluster"
)

// Tally counts the applications that have not ended, each once. One waits while it has no AM or has asks that are not
// granted; the others run.
type Tally struct {
	Known            bool // the other fields are set
	Running, Waiting int64
	Oldest           time.Duration // age of the oldest wait; 0 if unknown
	Reason           string        // the most frequent reason, with its queue; "" if unknown
}

// Breach is a broken invariant of the federation's queues.
type Breach struct {
	Invariant string
	Of        string // queue, member
	Text      string
}

// ShortAfter is the time for which a queue with waiting asks may be below its guarantee before the Judge reports it.
const ShortAfter = time.Minute

// shortBy is the part of a guarantee that a queue must lack to be reported. Sizes of containers and the rounding of
// amounts leave less.
const shortBy = 0.05

// Judge finds the queues that have less than their guarantee while they ask for more. Like Memory it is pure and has
// no lock. It looks at the nodes without a label.
type Judge struct {
	short  map[creel.QueuePath]shortQueue
	found  []ShortQueue         // the worst first
	leaves []queueShare         // of the last view
	over   queueShare           // the queue that is furthest above its guarantee
	off    []creel.SubclusterID // members without preemption

	refusals map[creel.SubclusterID][]Refusal // of trials
}

// shortQueue is what the Judge remembers of a queue that is short.
type shortQueue struct {
	since time.Time
	used  float64 // at the last observation
}

// ShortQueue is a queue that has less than its guarantee and asks for more. Used and Guaranteed are parts of the
// federation's dominant resource, from 0 to 1.
type ShortQueue struct {
	Queue            creel.QueuePath
	Used, Guaranteed float64
	Since            time.Time // of the Judge's clock; at the earliest its first observation
}

// Observe compares the queues of a view with their guarantees. The plan's amounts replace the configured ones where
// they are in force. A frozen view changes nothing, since its figures are old.
func (j *Judge) Observe(now time.Time, view *subcluster.View) {
	if view == nil || view.Freeze != nil {
		return
	}
	j.over, j.off, j.found, j.leaves = queueShare{}, nil, nil, leafShares(view)
	for i := range view.Members {
		if m := &view.Members[i]; Counted(m) && m.Load.PreemptionOff {
			j.off = append(j.off, m.ID)
		}
	}
	short := map[creel.QueuePath]shortQueue{}
	for _, q := range j.leaves {
		if q.used-q.guaranteed > j.over.used-j.over.guaranteed {
			j.over = q
		}
		if q.guaranteed-q.used <= shortBy*q.guaranteed || q.pending <= 0 {
			continue
		}
		before, known := j.short[q.queue]
		// Few asks that are granted at once are no lack, though there are some at each observation.
		if !known || q.pending <= shortBy*q.guaranteed && q.used > before.used {
			before.since = now
		}
		short[q.queue] = shortQueue{before.since, q.used}
		j.found = append(j.found, ShortQueue{q.queue, q.used, q.guaranteed, before.since})
	}
	j.short = short
	slices.SortStableFunc(j.found, func(a, b ShortQueue) int {
		switch x, y := a.Used/a.Guaranteed, b.Used/b.Guaranteed; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return strings.Compare(string(a.Queue), string(b.Queue))
	})
}

// Short lists the queues that have been short for ShortAfter, the worst first.
func (j *Judge) Short(now time.Time) (out []ShortQueue) {
	for _, q := range j.found {
		if now.Sub(q.Since) >= ShortAfter {
			out = append(out, q)
		}
	}
	return out
}

// Summarize judges a view, which may be nil: the worst finding first, with its cause, and a remedy. If the tally is
// unknown, the members' metrics count the applications. broken are the present breaches, the newest first.
func (j *Judge) Summarize(now time.Time, view *subcluster.View, apps Tally, broken ...Breach) Summary {
	if view == nil {
		return Summary{
			State: Bad, Sentence: "This router has not read the state store yet.", Members: map[string]int{},
			Remedy: "look at the router's log and at creel.store.url",
		}
	}
	s, by := sums(view)
	lost, suspect, draining := by[subcluster.StateLost], by[subcluster.StateSuspect], by[subcluster.StateDraining]
	known := len(view.Members) - len(by[subcluster.StateDeregistered])
	found := func(state Health, remedy, format string, values ...any) {
		s.State, s.Sentence, s.Remedy = state, fmt.Sprintf(format, values...), remedy
	}
	const list = "creel subcluster list shows the reasons"
	short := j.Short(now)
	refused, repair := j.worstRefusal(view)
	switch {
	case view.Freeze != nil:
		found(Bad, "start the state store or repair the network", "The view is frozen: %s.", view.Freeze.Reason)
	case known == 0:
		found(Warn, "start a ResourceManager with this federation's creel.store.url", "No subcluster has registered yet.")
		return s
	case len(by[subcluster.StateActive]) == 0:
		found(Bad, list, "None of %d members takes applications.", known)
	case len(broken) > 0:
		text := fmt.Sprintf("Invariant %q is broken for %s: %s", broken[0].Invariant, broken[0].Of,
			strings.TrimSuffix(broken[0].Text, "."))
		if more := len(broken) - 1; more > 0 {
			text += fmt.Sprintf(", and %s", count(int64(more), "more breach", "more breaches"))
		}
		found(Bad, "creel rebalancer audit shows every breach; docs/operations/alerts.md has the steps", "%s.", text)
	case len(lost) > 0:
		found(Bad, list, "%s lost; the sums are without %s.", areNames(lost), pick(len(lost), "it", "them"))
	case len(short) > 0:
		text, remedy := j.explain(now, short)
		found(Bad, remedy, "%s", text)
		if j.isOver() {
			s.Holder = j.over.queue
		}
	case len(suspect) > 0:
		found(Warn, list, "%s silent.", areNames(suspect))
	case refused != "":
		found(Warn, repair, "%s.", refused)
	case len(draining) > 0:
		found(Warn, "creel subcluster undrain "+string(draining[0])+" ends a drain", "%s draining.", areNames(draining))
	case apps.Known && apps.Waiting > apps.Running && (apps.Oldest == 0 || apps.Oldest >= ShortAfter):
		found(Warn, "creel app list --state waiting shows the reasons", "More applications wait than run.")
	case known == 1:
		found(Good, "", "The one member is well.")
	default:
		found(Good, "", "All %d members are well.", known)
	}
	s.Sentence += " " + sumText(&s, apps)
	return s
}

// explain describes the worst of the short queues, and a remedy.
func (j *Judge) explain(now time.Time, short []ShortQueue) (text, remedy string) {
	q := short[0]
	text = fmt.Sprintf("%s has %s of its guaranteed %s for %s",
		q.Queue, percent(q.Used), percent(q.Guaranteed), ageText(now.Sub(q.Since)))
	if more := len(short) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more %s short", more, pick(more, "queue is", "queues are"))
	}
	if !j.isOver() {
		return text + ". No queue is above its guarantee: limits or placement hold it back.",
			"creel app why ID of an application in it names the limit"
	}
	held, remedy := j.holder(q.Queue)
	return text + "; " + held + ".", remedy
}

// isOver reports whether a queue holds clearly more than its guarantee.
func (j *Judge) isOver() bool { return j.over.used-j.over.guaranteed > shortBy*j.over.guaranteed }

// holder describes the queue that is furthest above its guarantee, and a remedy for a queue that waits for its room.
func (j *Judge) holder(waits creel.QueuePath) (text, remedy string) {
	text = fmt.Sprintf("%s holds %s, entitled to %s", j.over.queue, percent(j.over.used), percent(j.over.guaranteed))
	remedy = "creel app list --queue " + string(j.over.queue) + " --sort memory shows what holds it; "
	if len(j.off) == 0 {
		return text, remedy + "preemption takes back what " + string(waits) + " lacks"
	}
	return text + "; preemption is off at " + names(j.off), remedy + "kill one, give " + string(j.over.queue) +
		" a maximum, or set yarn.resourcemanager.scheduler.monitor.enable there"
}

// Holder explains why a queue gets no more of nodes that are full: by the use and the guarantee of the queue that holds
// the room, and its own. Both texts are "" if no queue is above its guarantee.
func (j *Judge) Holder(queue creel.QueuePath) (cause, remedy string) {
	if !j.isOver() {
		return "", ""
	}
	i := slices.IndexFunc(j.leaves, func(s queueShare) bool { return s.queue == queue })
	if i < 0 {
		return "", ""
	}
	own := j.leaves[i]
	if own.queue == j.over.queue {
		return fmt.Sprintf("The nodes are full, and %s itself holds %s, entitled to %s.",
				queue, percent(own.used), percent(own.guaranteed)),
			"wait until its containers end, add nodes, or raise the guarantee of " + string(queue)
	}
	held, remedy := j.holder(queue)
	if own.guaranteed-own.used <= shortBy*own.guaranteed {
		remedy = fmt.Sprintf("raise the guarantee of %s, or give %s a maximum", queue, j.over.queue)
	}
	return fmt.Sprintf("The nodes are full: %s; %s has %s of its guaranteed %s.",
		held, queue, percent(own.used), percent(own.guaranteed)), remedy
}

// sumText is the sentence with the numbers of applications.
func sumText(s *Summary, apps Tally) string {
	if !apps.Known {
		apps.Running, apps.Waiting = s.Sum.AppsRunning, s.Sum.AppsPending
	}
	text := fmt.Sprintf("%s on %s, %s waiting", count(apps.Running, "application runs", "applications run"),
		count(s.Sum.ActiveNodes, "node", "nodes"), units.Number(apps.Waiting))
	if apps.Waiting > 0 && apps.Oldest > 0 {
		text += ", the oldest for " + ageText(apps.Oldest)
	}
	if apps.Waiting > 0 && apps.Reason != "" {
		text += ", most for " + apps.Reason
	}
	return text + "."
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

// ageText writes a time in its largest unit.
func ageText(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(int64(d/time.Second), 1))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int64(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int64(d/time.Hour))
	}
	return fmt.Sprintf("%d d", int64(d/(24*time.Hour)))
}
