// SPDX-License-Identifier: Apache-2.0

// Package logaggregation tracks the log aggregation of one application from the reports of its nodes, and derives one
// status over all nodes, like YARN's ResourceManager.
//
// It is pure, and its memory is limited. A node has one status whatever it reports, and its messages are stored only
// within the limits of Messages. The caller decides which nodes may report.
package logaggregation

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Logs is the log aggregation state of one application. The zero value is for an application that has not run on any
// node yet. A final status does not change, and then only failed and late nodes are retained.
type Logs struct {
	nodes  map[int32]creel.LogAggregationStatus // by serial number
	counts [statuses]int32                      // of nodes, by status
	texts  map[int32]*nodeMessages              // of nodes that sent messages
	ended  bool                                 // the application has ended
	over   creel.LogAggregationStatus           // the final status, 0 before
}

const statuses = int(creel.LogRunningWithFailure) + 1

// nodeMessages has a node's messages, oldest first.
type nodeMessages struct{ messages, failures []string }

// Messages limits the nodes' messages over all applications.
type Messages struct {
	// PerNode is the number of messages stored per node and application, and also of failures: the last ones.
	PerNode int
	bytes   int // of stored messages
}

// Limits of stored messages.
const (
	MaxMessage = 1 << 10  // bytes of one message; longer ones are cut
	maxBytes   = 16 << 20 // bytes of all messages; above it none is stored
)

// Status returns the status over all nodes.
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

// Has reports whether the application waits, or waited, for a node's logs.
func (l *Logs) Has(node int32) bool {
	_, ok := l.nodes[node]
	return ok
}

// Left reports whether a node has not aggregated its logs, or failed to. Before the application's end it is true for
// any node.
func (l *Logs) Left() bool { return len(l.nodes) > 0 }

// Waits reports whether a node may still aggregate its logs.
func (l *Logs) Waits() bool { return l.over == 0 && l.Left() }

// Ran records that a node runs a container of the application, so that its logs are expected. After the application's
// end the list of nodes is complete.
func (l *Logs) Ran(node int32) {
	if !l.ended && !l.Has(node) {
		l.set(node, creel.LogNotStart)
	}
}

// Report applies a node's report. A status unknown to YARN counts as none.
func (l *Logs) Report(node int32, s creel.LogAggregationStatus, message string, room *Messages) {
	if l.over != 0 || s <= 0 || int(s) >= statuses {
		return
	}
	// Nodes report each round; a successful round does not undo an earlier failure.
	if s != creel.LogRunning || l.nodes[node] != creel.LogRunningWithFailure {
		l.set(node, s)
	}
	l.hear(node, s, message, room)
	l.settle(room)
}

// End records that the application has ended. Before that no status is final.
func (l *Logs) End(room *Messages) {
	l.ended = true
	l.settle(room)
}

// TimeOut records that the nodes' time for an ended application's logs has expired.
func (l *Logs) TimeOut(room *Messages) {
	for node, s := range l.nodes {
		if !s.Over() {
			l.set(node, creel.LogTimeOut)
		}
	}
	l.settle(room)
}

// Forget drops all stored state.
func (l *Logs) Forget(room *Messages) {
	for node := range l.texts {
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

// settle makes the status final, if it is over.
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
	l.nodes, l.texts = compact(l.nodes), compact(l.texts)
}

// compact returns a copy of a map without the memory of deleted entries, which Go's maps never release. It returns
// nil for an empty map.
func compact[V any](m map[int32]V) map[int32]V {
	if len(m) == 0 {
		return nil
	}
	out := make(map[int32]V, len(m))
	maps.Copy(out, m)
	return out
}

// hear stores a node's message.
func (l *Logs) hear(node int32, s creel.LogAggregationStatus, message string, room *Messages) {
	message = strings.ToValidUTF8(message[:min(len(message), MaxMessage)], "")
	if message == "" || room.PerNode <= 0 || room.bytes+len(message) > maxBytes {
		return
	}
	message = strings.Clone(message) // do not retain the whole string after the cut
	if l.texts == nil {
		l.texts = map[int32]*nodeMessages{}
	}
	of := l.texts[node]
	if of == nil {
		of = &nodeMessages{}
		l.texts[node] = of
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
	of := l.texts[node]
	if of == nil {
		return
	}
	for _, list := range [][]string{of.messages, of.failures} {
		for _, m := range list {
			room.bytes -= len(m)
		}
	}
	delete(l.texts, node)
}

// Node is one node of an application.
type Node struct {
	Node               int32
	Status             creel.LogAggregationStatus
	Messages, Failures []string // the last ones, oldest first
}

// Nodes returns the retained nodes in order.
func (l *Logs) Nodes() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for _, node := range slices.Sorted(maps.Keys(l.nodes)) {
			n := Node{Node: node, Status: l.nodes[node]}
			if of := l.texts[node]; of != nil {
				n.Messages, n.Failures = slices.Clone(of.messages), slices.Clone(of.failures)
			}
			if !yield(n) {
				return
			}
		}
	}
}
