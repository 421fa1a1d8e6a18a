// SPDX-License-Identifier: Apache-2.0

// Package logaggregation is how far nodes are with the logs of one application, by what each of them
// reports: one status of all nodes together, as YARN's ResourceManager has it.
//
// It is pure, and bounded: a node has one status, whatever it reports, and what nodes say besides is
// kept as far as Messages allow. Who may report is the caller's to decide.
package logaggregation

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Logs are those of one application. The zero value is of one that ran nowhere yet. Once the status is
// over nothing changes it any more, and only nodes that failed or were late are kept.
type Logs struct {
	nodes  map[int32]creel.LogAggregationStatus // by serial number
	counts [statuses]int32                      // of nodes, by status
	said   map[int32]*said                      // of nodes that said something
	ended  bool                                 // the application is
	over   creel.LogAggregationStatus           // the last status, 0 before
}

const statuses = int(creel.LogRunningWithFailure) + 1

// said is what a node said, the oldest first.
type said struct{ messages, failures []string }

// Messages bound what nodes say, over all applications.
type Messages struct {
	// PerNode is how many messages of a node are kept for an application, and as many of failures:
	// the last ones.
	PerNode int
	bytes   int // that are kept
}

// Bounds of what is kept.
const (
	MaxMessage = 1 << 10  // bytes of one message; the rest is cut off
	maxBytes   = 16 << 20 // of all messages; beyond it none is kept
)

// Status is that of all nodes together.
func (l *Logs) Status() creel.LogAggregationStatus {
	if l.over != 0 {
		return l.over
	}
	all := int32(len(l.nodes))
	done := l.counts[creel.LogSucceeded] + l.counts[creel.LogFailed] + l.counts[creel.LogTimeOut]
	switch {
	case l.counts[creel.LogNotStart] == all:
		return creel.LogNotStart
	case done < all && l.counts[creel.LogRunningWithFailure] > 0:
		return creel.LogRunningWithFailure
	case done < all || !l.ended:
		return creel.LogRunning
	case l.counts[creel.LogFailed] > 0:
		return creel.LogFailed
	case l.counts[creel.LogTimeOut] > 0:
		return creel.LogTimeOut
	}
	return creel.LogSucceeded
}

// Has reports whether a node is among those whose logs are waited for, or were.
func (l *Logs) Has(node int32) bool {
	_, ok := l.nodes[node]
	return ok
}

// Left reports whether there is a node that has not gathered its logs, or could not. Before the end it is any.
func (l *Logs) Left() bool { return len(l.nodes) > 0 }

// Waits reports whether there is a node that may still gather its logs.
func (l *Logs) Waits() bool { return l.over == 0 && l.Left() }

// Ran tells that a node runs something of the application, so that its logs are waited for. An ended one
// has all its nodes.
func (l *Logs) Ran(node int32) {
	if !l.ended && !l.Has(node) {
		l.set(node, creel.LogNotStart)
	}
}

// Report takes what a node reports. A status that YARN does not have is none.
func (l *Logs) Report(node int32, s creel.LogAggregationStatus, message string, room *Messages) {
	if l.over != 0 || s <= 0 || int(s) >= statuses {
		return
	}
	// Nodes report each round; a round that went well does not undo the failure of one before.
	if s != creel.LogRunning || l.nodes[node] != creel.LogRunningWithFailure {
		l.set(node, s)
	}
	l.hear(node, s, message, room)
	l.settle(room)
}

// End tells that the application has ended. Before that no status is the last one.
func (l *Logs) End(room *Messages) {
	l.ended = true
	l.settle(room)
}

// TimeOut tells that the time is over that nodes have for the logs of an ended application.
func (l *Logs) TimeOut(room *Messages) {
	for node, s := range l.nodes {
		if !s.Over() {
			l.set(node, creel.LogTimeOut)
		}
	}
	l.settle(room)
}

// Forget gives up what is kept.
func (l *Logs) Forget(room *Messages) {
	for node := range l.said {
		l.unhear(node, room)
	}
	*l = Logs{}
}

func (l *Logs) set(node int32, s creel.LogAggregationStatus) {
	if l.nodes == nil {
		l.nodes = map[int32]creel.LogAggregationStatus{}
	}
	if was, known := l.nodes[node]; known {
		l.counts[was]--
	}
	l.nodes[node] = s
	l.counts[s]++
}

// settle makes the status the last one, where it is over.
func (l *Logs) settle(room *Messages) {
	s := l.Status()
	if !s.Over() {
		return
	}
	l.over = s
	for node, s := range l.nodes {
		if s == creel.LogSucceeded {
			delete(l.nodes, node)
			l.unhear(node, room)
		}
	}
	l.nodes, l.said = compact(l.nodes), compact(l.said)
}

// compact returns a map without the room of what was deleted from it, which a map keeps;
// nil for an empty one.
func compact[V any](m map[int32]V) map[int32]V {
	if len(m) == 0 {
		return nil
	}
	out := make(map[int32]V, len(m))
	maps.Copy(out, m)
	return out
}

// hear keeps a node's message.
func (l *Logs) hear(node int32, s creel.LogAggregationStatus, message string, room *Messages) {
	message = strings.ToValidUTF8(message[:min(len(message), MaxMessage)], "")
	if message == "" || room.PerNode <= 0 || room.bytes+len(message) > maxBytes {
		return
	}
	message = strings.Clone(message) // not the whole of what was cut
	if l.said == nil {
		l.said = map[int32]*said{}
	}
	of := l.said[node]
	if of == nil {
		of = &said{}
		l.said[node] = of
	}
	list := &of.messages
	if s == creel.LogFailed || s == creel.LogRunningWithFailure {
		list = &of.failures
	}
	if len(*list) >= room.PerNode {
		room.bytes -= len((*list)[0])
		*list = slices.Delete(*list, 0, 1)
	}
	*list = append(*list, message)
	room.bytes += len(message)
}

func (l *Logs) unhear(node int32, room *Messages) {
	of := l.said[node]
	if of == nil {
		return
	}
	for _, list := range [][]string{of.messages, of.failures} {
		for _, m := range list {
			room.bytes -= len(m)
		}
	}
	delete(l.said, node)
}

// Node is one node of an application.
type Node struct {
	Node               int32
	Status             creel.LogAggregationStatus
	Messages, Failures []string // the last ones, the oldest first
}

// Nodes gives the nodes that are kept, in order.
func (l *Logs) Nodes() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for _, node := range slices.Sorted(maps.Keys(l.nodes)) {
			n := Node{Node: node, Status: l.nodes[node]}
			if of := l.said[node]; of != nil {
				n.Messages, n.Failures = slices.Clone(of.messages), slices.Clone(of.failures)
			}
			if !yield(n) {
				return
			}
		}
	}
}
