// SPDX-License-Identifier: Apache-2.0

package logaggregation

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
)

// slowLogs keeps every node's status in a list and recounts each time, in the order in which YARN's ResourceManager
// decides.
type slowLogs struct {
	nodes map[int32]creel.LogAggregationStatus
	ended bool
	last  creel.LogAggregationStatus
}

func (s *slowLogs) report(node int32, is creel.LogAggregationStatus) {
	if s.last == 0 && (is != creel.LogRunning || s.nodes[node] != creel.LogRunningWithFailure) {
		s.nodes[node] = is
	}
}

func (s *slowLogs) status() creel.LogAggregationStatus {
	if s.last != 0 {
		return s.last
	}
	has := func(is creel.LogAggregationStatus) bool {
		for _, n := range s.nodes {
			if n == is {
				return true
			}
		}
		return false
	}
	started, open := false, false
	for _, n := range s.nodes {
		started = started || n != creel.LogNotStart
		open = open || n != creel.LogSucceeded && n != creel.LogFailed && n != creel.LogTimeOut
	}
	switch {
	case !started:
		return creel.LogNotStart
	case open && has(creel.LogRunningWithFailure):
		return creel.LogRunningWithFailure
	case open || !s.ended:
		return creel.LogRunning
	case has(creel.LogFailed):
		s.last = creel.LogFailed
	case has(creel.LogTimeOut):
		s.last = creel.LogTimeOut
	default:
		s.last = creel.LogSucceeded
	}
	return s.last
}

// For any order of reports the status equals a full recount, stored messages stay within their limits, and forgotten
// state uses no memory.
func TestStatusCoversAllNodes(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		room := &Messages{PerNode: 2}
		l, want := &Logs{}, &slowLogs{nodes: map[int32]creel.LogAggregationStatus{}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			node := rapid.Int32Range(0, 3).Draw(t, "node")
			switch rapid.IntRange(0, 12).Draw(t, "what") {
			case 0:
				l.End(room)
				want.ended = true
			case 1:
				if want.ended {
					l.TimeOut(room)
					for n, s := range want.nodes {
						if want.last == 0 && !s.Over() {
							want.nodes[n] = creel.LogTimeOut
						}
					}
				}
			case 2, 3:
				l.Ran(node)
				if _, known := want.nodes[node]; !known && !want.ended {
					want.nodes[node] = creel.LogNotStart
				}
			default:
				s := creel.LogAggregationStatus(rapid.Int32Range(1, 7).Draw(t, "status"))
				l.Report(node, s, strings.Repeat("m", rapid.IntRange(0, 2000).Draw(t, "message")), room)
				want.report(node, s)
			}
			if got := l.Status(); got != want.status() {
				t.Fatalf("%v, want %v of %v, ended %v", got, want.status(), want.nodes, want.ended)
			}
			kept := 0
			for n := range l.Nodes() {
				for _, list := range [][]string{n.Messages, n.Failures} {
					if len(list) > room.PerNode {
						t.Fatalf("%d messages of node %d", len(list), n.Node)
					}
					for _, m := range list {
						if kept += len(m); len(m) > MaxMessage {
							t.Fatalf("a message of %d bytes", len(m))
						}
					}
				}
			}
			if kept != room.bytes {
				t.Fatalf("%d bytes are kept, counted are %d", kept, room.bytes)
			}
		}
		if l.Forget(room); room.bytes != 0 {
			t.Fatalf("%d bytes are left", room.bytes)
		}
	})
}

// A status that YARN does not have is no report.
func TestAnUnknownStatusIsNoReport(t *testing.T) {
	l, room := &Logs{}, &Messages{PerNode: 1}
	for _, s := range []creel.LogAggregationStatus{-1, 0, 8, 1 << 30} {
		l.Report(1, s, "hm", room)
	}
	if l.Has(1) || len(slices.Collect(l.Nodes())) > 0 || l.Status() != creel.LogNotStart {
		t.Error(l.Status())
	}
}

// All applications together store a bounded amount of messages. The statuses still count.
func TestMessagesAreBoundedOverAll(t *testing.T) {
	room := &Messages{PerNode: 1000}
	long := strings.Repeat("m", 4*MaxMessage)
	var all [20]Logs
	for i := range all {
		for range 1000 {
			all[i].Report(1, creel.LogRunning, long, room)
		}
		all[i].Report(1, creel.LogFailed, long, room)
		if all[i].End(room); all[i].Status() != creel.LogFailed {
			t.Fatal(all[i].Status())
		}
	}
	if room.bytes > maxBytes || room.bytes < maxBytes-MaxMessage {
		t.Errorf("%d bytes are kept of at most %d", room.bytes, maxBytes)
	}
}

// An application with complete logs retains nothing about its nodes, because thousands of such applications are
// remembered.
func TestGatheredLogsHoldNothing(t *testing.T) {
	var l Logs
	room := &Messages{PerNode: 10}
	for n := range int32(2000) {
		l.Ran(n)
	}
	l.End(room)
	for n := range int32(2000) {
		l.Report(n, creel.LogSucceeded, "gathered", room)
	}
	if l.Status() != creel.LogSucceeded || l.nodes != nil || l.texts != nil || room.bytes != 0 {
		t.Errorf("%v, nodes %v, messages %v, %d bytes", l.Status(), l.nodes, l.texts, room.bytes)
	}
}
