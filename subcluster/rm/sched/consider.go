// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// Outcome is the result for a queue, an application or an ask when a node is considered, under YARN's names.
type Outcome string

// Outcomes of a consideration.
const (
	Accepted Outcome = "ACCEPTED" // something below it has an outcome of its own
	Skipped  Outcome = "SKIPPED"  // not now, or not on this node
	Rejected Outcome = "REJECTED" // a limit or a rule excludes it
	Reserved Outcome = "RESERVED" // the node is reserved for it
)

// AskOn is the outcome for one outstanding ask on a node.
type AskOn struct {
	Priority            int32
	AllocationRequestID int64
	Outcome             Outcome
	Text                string // one sentence
}

// AppOn is the outcome for one application on a node.
type AppOn struct {
	App      creel.ApplicationID
	Queue    creel.QueuePath
	Priority int32
	Outcome  Outcome
	Text     string // if none of its asks was examined, or some were left out
	Asks     []AskOn
}

// QueueOn is the outcome for a queue on a node.
type QueueOn struct {
	Path     creel.QueuePath
	Outcome  Outcome
	Text     string
	Children []QueueOn
	Apps     []AppOn
}

// asksOn is the maximum number of an application's asks that are examined on one node.
const asksOn = 16

// Consider returns the reason why each waiting application in the partition of a node gets no container there, for at
// most the given number of applications. It changes nothing. After a Schedule no ask can be served, so every
// outstanding ask has such a reason.
func (e Explainer) Consider(n *Node, most int) QueueOn {
	return n.of.explain().considerQueue(n.of.tree.root, n, &most)
}

// ConsiderApp is Consider for one application. ok is false if it has no outstanding ask in the node's partition.
func (e Explainer) ConsiderApp(a *App, n *Node) (on AppOn, ok bool) {
	for _, x := range append([]*App{a}, a.parts...) {
		if x.queue != nil && x.queue.part == n.of && (!a.activated || x.pendingCount > 0) {
			return n.of.explain().considerApp(x, n), true
		}
	}
	return AppOn{}, false
}

// FreeOn returns a node's free resources.
func (e Explainer) FreeOn(n *Node) creel.Resource { return e.part.sizes.Resource(&n.free) }

func (e Explainer) considerQueue(q *Queue, n *Node, left *int) QueueOn {
	on := QueueOn{Path: q.path, Outcome: Skipped}
	if q.leaf != nil {
		e.considerLeaf(q, n, left, &on)
	}
	for _, c := range q.children {
		below := e.considerQueue(c, n, left)
		if below.Outcome == Accepted {
			on.Outcome = Accepted
		}
		on.Children = append(on.Children, below)
	}
	if on.Outcome == Skipped && on.Text == "" {
		on.Text = "Queue does not need more resource"
	}
	return on
}

func (e Explainer) considerLeaf(q *Queue, n *Node, left *int, on *QueueOn) {
	var apps []*App
	for _, u := range q.leaf.userList {
		apps = append(append(apps, u.apps.Items...), u.pending.Items...)
	}
	slices.SortFunc(apps, func(a, b *App) int { return a.id.Compare(b.id) })
	listed := min(len(apps), *left)
	*left -= listed
	for _, a := range apps[:listed] {
		on.Apps = append(on.Apps, e.considerApp(a, n))
	}
	if listed > 0 {
		on.Outcome = Accepted
	}
	if k := len(apps) - listed; k > 0 {
		on.Text = fmt.Sprintf("%d more waiting applications are not listed.", k)
	}
}

func (e Explainer) considerApp(a *App, n *Node) AppOn {
	on := AppOn{App: a.id, Queue: a.queue.path, Priority: a.priority, Outcome: Skipped}
	if whole := a.whole(); !whole.activated {
		on.Text = e.part.cluster.Explain().Why(whole).Text
		return on
	}
	waiting := 0
	for _, k := range a.asks {
		if k.count <= 0 || k.size == nil {
			continue
		}
		if waiting++; waiting <= asksOn {
			on.Asks = append(on.Asks, e.considerAsk(a, k, n))
		}
	}
	if waiting > asksOn {
		on.Text = fmt.Sprintf("%d more asks are not listed.", waiting-asksOn)
	}
	if waiting > 0 {
		on.Outcome = Accepted
	}
	return on
}

// considerAsk checks the limits first, then the node, in the order of whyAsk.
func (e Explainer) considerAsk(a *App, k *Ask, n *Node) AskOn {
	p := e.part
	on := AskOn{Priority: k.priority, AllocationRequestID: k.alloc}
	because := func(o Outcome, format string, args ...any) AskOn {
		on.Outcome, on.Text = o, fmt.Sprintf(format, args...)
		return on
	}
	need, free, total := k.size.Resource, p.sizes.Resource(&n.free), p.sizes.Resource(&n.total)
	var w Why
	switch {
	case k.hold != nil && k.hold.node == n:
		return because(Reserved, "The node is reserved for it and has %s free; it needs %s.", free, need)
	case e.whyLimited(a, k, &w):
		if w.Limit == LimitReservation {
			return because(Skipped, "%s", w.Text)
		}
		return because(Rejected, "%s", w.Text)
	case n.use != Open:
		return because(Rejected, "The node accepts no containers.")
	case !p.sizes.Fits(&k.size.V, &n.total):
		return because(Rejected, "It needs %s; the node has %s even when empty.", need, total)
	case k.app.black.bars(n):
		return because(Rejected, "The node is on its blacklist.")
	}
	if k.want != nil {
		if c := p.tags.refused(k, n); c != nil {
			return because(Rejected, "Its placement constraint %s refuses the node.", c)
		}
	}
	switch {
	case n.hold != nil:
		return because(Skipped, "The node is reserved for %s.", n.hold.ask.app.id)
	case n.held:
		return because(Skipped, "Free resources of the node are kept for an ask of preemption.")
	case !p.sizes.Fits(&k.size.V, &n.free):
		return because(Skipped, "It needs %s; the node has %s free.", need, free)
	case k.reaches(n):
		return because(Skipped, "Others are before it in the order of the queues.")
	case k.strict:
		return because(Skipped, "It takes only the places that it names.")
	}
	return because(Skipped, "It waits for a node that it names.")
}

// reaches is reach without effect on the delay of k: whether k may use n, as far as its places go.
func (k *Ask) reaches(n *Node) bool {
	switch rack := k.named.OnRack(n.rack); {
	case !k.named.Any():
		return !k.strict
	case k.named.OnHost(n.host) != nil && k.rackAsked(n):
		return true
	case rack != nil && !rack.Strict && (k.level >= places.AtRack || len(k.named.Hosts) == 0):
		return true
	}
	return !k.strict && k.level >= places.AtAny
}
