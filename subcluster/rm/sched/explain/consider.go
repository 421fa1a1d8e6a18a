// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/creelrm/creel"
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

// QueueAt is a queue with its waiting applications, when a node is considered.
type QueueAt struct {
	Path     creel.QueuePath
	Children []QueueAt
	Apps     []AppAt // of a leaf
	More     int     // further applications, which are not listed
}

// AppAt is a waiting application when a node is considered.
type AppAt struct {
	App      creel.ApplicationID
	Queue    creel.QueuePath
	Priority int32
	InLine   *Why    // it is not activated
	Asks     []AskAt // outstanding ones; the first MostAsks
	More     int     // further ones
}

// MostAsks is the maximum number of an application's asks that are examined on one node.
const MostAsks = 16

// AskAt is an outstanding ask when a node is considered.
type AskAt struct {
	Priority            int32
	AllocationRequestID int64
	Need                creel.Resource
	Free, Total         creel.Resource // of the node
	Here                bool           // the node is reserved for it
	Stop                *Stop          // it waits for no particular node

	// These are only read without Here and Stop.
	Node    Node
	For     creel.ApplicationID // the application that the node is reserved for
	Reaches bool                // the ask may use the node, as far as its places go
	Strict  bool                // it takes only the places that it names
}

// On returns the outcomes of a queue and of those below it.
func (q *QueueAt) On() QueueOn {
	on := QueueOn{Path: q.Path, Outcome: Skipped}
	for i := range q.Apps {
		on.Apps = append(on.Apps, q.Apps[i].On())
		on.Outcome = Accepted
	}
	if q.More > 0 {
		on.Text = fmt.Sprintf("%d more waiting applications are not listed.", q.More)
	}
	for i := range q.Children {
		below := q.Children[i].On()
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

// On returns the outcome of an application.
func (a *AppAt) On() AppOn {
	on := AppOn{App: a.App, Queue: a.Queue, Priority: a.Priority, Outcome: Skipped}
	if a.InLine != nil {
		on.Text = a.InLine.Text
		return on
	}
	for i := range a.Asks {
		on.Asks = append(on.Asks, a.Asks[i].on())
		on.Outcome = Accepted
	}
	if a.More > 0 {
		on.Text = fmt.Sprintf("%d more asks are not listed.", a.More)
	}
	return on
}

// on checks the limits first, then the node.
func (k *AskAt) on() AskOn {
	on := AskOn{Priority: k.Priority, AllocationRequestID: k.AllocationRequestID}
	because := func(o Outcome, format string, args ...any) AskOn {
		on.Outcome, on.Text = o, fmt.Sprintf(format, args...)
		return on
	}
	n := &k.Node
	switch {
	case k.Here:
		return because(Reserved, "The node is reserved for it and has %s free; it needs %s.", k.Free, k.Need)
	case k.Stop != nil && k.Stop.Limit == LimitReservation:
		return because(Skipped, "%s", k.Stop.Why().Text)
	case k.Stop != nil:
		return because(Rejected, "%s", k.Stop.Why().Text)
	case !n.Open:
		return because(Rejected, "The node accepts no containers.")
	case !n.Large:
		return because(Rejected, "It needs %s; the node has %s even when empty.", k.Need, k.Total)
	case n.Barred:
		return because(Rejected, "The node is on its blacklist.")
	case n.Refused != nil:
		return because(Rejected, "Its placement constraint %s refuses the node.", n.Refused)
	case n.Held:
		return because(Skipped, "The node is reserved for %s.", k.For)
	case n.Kept:
		return because(Skipped, "Free resources of the node are kept for an ask of preemption.")
	case !n.Room:
		return because(Skipped, "It needs %s; the node has %s free.", k.Need, k.Free)
	case k.Reaches:
		return because(Skipped, "Others are before it in the order of the queues.")
	case k.Strict:
		return because(Skipped, "It takes only the places that it names.")
	}
	return because(Skipped, "It waits for a node that it names.")
}
