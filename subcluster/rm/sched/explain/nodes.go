// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// Node is the scheduler's verdict about an ask on a node, by clause. A clause after the first one that excludes the ask
// need not be set.
type Node struct {
	Open    bool // it accepts containers at all
	Large   bool // enough for the ask, when empty
	Barred  bool // on the application's blacklist
	Refused *constraints.Constraint
	Held    bool // reserved for an ask
	Kept    bool // Held, or kept for an ask of preemption
	Room    bool // enough is free now
}

// NodeCounts counts nodes by the first clause that excludes an ask.
type NodeCounts struct {
	Open                  int // nodes that accept containers at all
	TooSmall, Blacklisted int // even when empty; by the application
	Refused               int // by its placement constraint
	Full                  int // now
	Reserved, Elsewhere   int // enough free, but held for others; or not where the ask wants to be
}

// Tally counts the nodes of a partition that pass each clause. The zero value is ready.
type Tally struct {
	takes, large, allowed, admitted, room, held int // held nodes passed all
	refused                                     map[*constraints.Constraint]int
}

// Add counts a node.
func (t *Tally) Add(n *Node) {
	if !n.Open {
		return
	}
	t.takes++
	if !n.Large {
		return
	}
	t.large++
	if n.Barred {
		return
	}
	t.allowed++
	if n.Refused != nil {
		if t.refused == nil {
			t.refused = map[*constraints.Constraint]int{}
		}
		t.refused[n.Refused]++
		return
	}
	t.admitted++
	if !n.Room {
		return
	}
	t.room++
	if n.Held {
		t.held++
	}
}

// Limit is the first clause that no node passes, in a partition with a label, or without one.
func (t *Tally) Limit(label string) Limit {
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

// NoNode is an ask that no limit stops, and that no node serves.
type NoNode struct {
	User  string
	Queue creel.QueuePath // of the application
	Label string          // of the partition
	Ask   AskView

	Tally        Tally
	Free         creel.Resource // the most that is free on a node, of each type
	Strict       bool           // it takes only the places that it names
	Hosts, Racks int            // that it names
	Left         int64          // opportunities until it takes further places
}

// Why returns the reason why the ask waits.
func (k *NoNode) Why() Why {
	t := &k.Tally
	w := Why{
		Limit: t.Limit(k.Label), Where: k.Queue, User: k.User, Ask: k.Ask, Need: k.Ask.Resource, Used: k.Free,
		Count: t.room, Max: t.takes,
		Nodes: NodeCounts{
			Open: t.takes, TooSmall: t.takes - t.large, Blacklisted: t.large - t.allowed, Full: t.admitted - t.room,
			Refused: t.allowed - t.admitted, Reserved: t.held, Elsewhere: t.room - t.held,
		},
	}
	switch w.Limit {
	case LimitLabel:
		w.Text = fmt.Sprintf("No running node has the label %s that it asks for.", k.Label)
		w.Try = "give a node the label (yarn rmadmin -replaceLabelsOnNode), or ask without it"
	case LimitNoNode:
		w.Text = fmt.Sprintf("It needs %s; none of the %d nodes has that much even when empty.", w.Need, t.takes)
		w.Try = "ask for smaller containers or add larger nodes"
		if t.takes == 0 {
			w.Text, w.Try = "No node is running.", "start a NodeManager"
		}
	case LimitBlacklist:
		w.Text = fmt.Sprintf("All %d nodes that are large enough are on its blacklist.", t.large)
		w.Try = "remove nodes from the blacklist"
	case LimitConstraint:
		k.refused(&w)
	case LimitRoom:
		w.Text = fmt.Sprintf(
			"It needs %s; none of the %d nodes it may use has that much free (most free of each type: %s).",
			w.Need, t.admitted, w.Used)
		if n := w.Nodes.Refused; n > 0 {
			w.Text += fmt.Sprintf(" Its placement constraint %s refuses %d others.", k.Ask.Constraint, n)
		}
		w.Try = "wait until containers end, or add nodes"
	case LimitReservation:
		w.Text = fmt.Sprintf("The %d nodes with room for %s are reserved for others.", t.room, w.Need)
		w.Try = "wait for the reservations to be fulfilled"
	default:
		k.elsewhere(&w)
	}
	return w
}

// elsewhere describes an ask whose places have no room, while other nodes have.
func (k *NoNode) elsewhere(w *Why) {
	if k.Strict {
		w.Text = fmt.Sprintf(
			"It takes only the places it names (%d hosts, %d racks), and none has room; %d other nodes have.",
			k.Hosts, k.Racks, k.Tally.room)
		w.Try = "relax locality, or wait until containers there end"
		return
	}
	w.Text = fmt.Sprintf(
		"It waits for a node it names; %d other nodes have room. It goes further after %d more opportunities.",
		k.Tally.room, max(k.Left, 0))
	w.Try = "wait, or lower the locality delay"
}

// refused names the clause that excludes most of the nodes which the ask could use.
func (k *NoNode) refused(w *Why) {
	by := k.Tally.refused
	worst := constraints.Worst(by)
	w.Text = fmt.Sprintf("Its placement constraint refuses all %d nodes that it may use: %q refuses %d of them.",
		k.Tally.allowed, worst, by[worst])
	if worst.Wrong != "" {
		w.Try = "ask by another constraint"
		return
	}
	w.Try = "wait until containers with the tags start or end, give a node the attribute, add nodes, " +
		"or ask by another constraint"
}

// mostTallies limits the scans of all nodes by one Scan. After that many applications with a blacklist or a constraint,
// the result for further ones is LimitNodes; Why names the clause.
const mostTallies = 64

// Scan checks many applications between two events. The same clause excludes all asks of one size that any node may
// serve, so nodes are checked once for all of them. The zero value is ready.
type Scan struct {
	limits map[scanKey]Limit
	looked int
}

type scanKey struct {
	label string
	size  *amounts.Size
}

// Limit returns the limit of an ask that no node serves, in the partition of a label. count counts the nodes. alike is
// true if it would return the same for every ask of this size: the ask has neither a blacklist nor a constraint.
func (s *Scan) Limit(label string, size *amounts.Size, alike bool, count func() Tally) Limit {
	key := scanKey{label, size}
	if limit, known := s.limits[key]; known && alike {
		return limit
	}
	if s.looked == mostTallies {
		return LimitNodes
	}
	s.looked++
	t := count()
	limit := t.Limit(label)
	if alike {
		if s.limits == nil {
			s.limits = map[scanKey]Limit{}
		}
		s.limits[key] = limit
	}
	return limit
}
