// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// Clients wait for their applications by repeating a report request. The goroutine that reads the connection sends a
// cached encoded report, as long as the machine has only answered queries since, and no longer than reportAge: values
// that depend on time alone (seconds used, time left) count in seconds (BenchmarkReports in rm/rpc).
const (
	reportAge  = 100 * time.Millisecond
	maxReports = 8192
)

// ReportKey names an encoded report of an application.
type ReportKey struct {
	App  creel.ApplicationID
	User string // the caller; determines the visible fields
}

type encodedReport struct {
	moves uint64
	made  time.Time
	body  []byte // the encoded response
}

// reports are the encoded reports of live applications.
type reports struct {
	mu sync.RWMutex
	m  map[ReportKey]encodedReport
}

// KeptReport returns the report given to KeepReport if nothing has moved since it
// was made, or nil.
func (s *Server) KeptReport(key ReportKey) []byte {
	s.reports.mu.RLock()
	e := s.reports.m[key]
	s.reports.mu.RUnlock()
	if e.moves != s.Moves() || time.Since(e.made) > reportAge {
		return nil
	}
	return e.body
}

// KeepReport caches a report made at a count of Moves. The body must not be written to any more.
func (s *Server) KeepReport(key ReportKey, moves uint64, made time.Time, body []byte) {
	r := &s.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil || len(r.m) >= maxReports {
		r.m = map[ReportKey]encodedReport{} // those that are still asked for come back
	}
	r.m[key] = encodedReport{moves: moves, made: made, body: body}
}

// maxEnded bounds the encoded reports of ended applications, in bytes; each
// counts for the view that stays with it too.
const (
	maxEnded  = 32 << 20
	endedView = 1 << 10
)

// ListEntry is an application in a list.
type ListEntry struct {
	View     *rm.AppView
	Viewable bool // the caller may see all of it
}

// endedReports caches the encoded reports of ended applications. A ResourceManager remembers thousands of them, they
// are most of a long list, and the list is encoded again whenever any application changes (BenchmarkChangingList in
// rm/rpc).
type endedReports struct {
	mu    sync.RWMutex
	m     map[ListEntry][]byte
	bytes int
}

// KeptEnded fills in the reports of those listed that have ended and are kept.
func (s *Server) KeptEnded(list []ListEntry, reports [][]byte) {
	s.ended.mu.RLock()
	defer s.ended.mu.RUnlock()
	for i, a := range list {
		if a.View.Over {
			reports[i] = s.ended.m[a]
		}
	}
}

// KeepEnded caches the reports at these places of a list. They must not be written to any more.
func (s *Server) KeepEnded(list []ListEntry, reports [][]byte, places []int) {
	if len(places) == 0 {
		return
	}
	e := &s.ended
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range places {
		size := endedView + len(reports[i])
		if e.m == nil || e.bytes+size > maxEnded {
			e.m, e.bytes = map[ListEntry][]byte{}, 0 // those that are still listed come back
		}
		if _, ok := e.m[list[i]]; !ok {
			e.m[list[i]] = reports[i]
			e.bytes += size
		}
	}
}
