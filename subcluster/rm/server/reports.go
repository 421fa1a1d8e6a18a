// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// Clients wait for their applications by repeated report requests. The goroutine that reads the connection sends a
// cached encoded report, if the machine has only answered queries since and the report is not older than reportAge.
// Values that depend only on time (seconds used, time left) change in seconds (BenchmarkReports in rm/rpc).
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

// reports has the encoded reports of live applications.
type reports struct {
	mu sync.RWMutex
	m  map[ReportKey]encodedReport
}

// KeptReport returns the report passed to KeepReport if nothing has changed since it was made, else nil.
func (s *Server) KeptReport(key ReportKey) []byte {
	s.reports.mu.RLock()
	e := s.reports.m[key]
	s.reports.mu.RUnlock()
	if e.moves != s.Moves() || time.Since(e.made) > reportAge {
		return nil
	}
	return e.body
}

// KeepReport caches a report made at a count of Moves. The body must not be changed afterwards.
func (s *Server) KeepReport(key ReportKey, moves uint64, made time.Time, body []byte) {
	r := &s.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil || len(r.m) >= maxReports {
		r.m = map[ReportKey]encodedReport{} // requested ones are cached again
	}
	r.m[key] = encodedReport{moves: moves, made: made, body: body}
}

// maxEnded limits the encoded reports of ended applications, in bytes; each also counts for its retained view.
const (
	maxEnded  = 32 << 20
	endedView = 1 << 10
)

// ListEntry is an application in a list.
type ListEntry struct {
	View     *rm.AppView
	Viewable bool // the caller may see all fields
}

// endedReports caches the encoded reports of ended applications. A ResourceManager remembers thousands of them and
// they are most of a long list, which is encoded again after each change of any application (BenchmarkChangingList in
// rm/rpc).
type endedReports struct {
	mu    sync.RWMutex
	m     map[ListEntry][]byte
	bytes int
}

// KeptEnded fills in the cached reports of ended applications in a list.
func (s *Server) KeptEnded(list []ListEntry, reports [][]byte) {
	s.ended.mu.RLock()
	defer s.ended.mu.RUnlock()
	for i, a := range list {
		if a.View.Over {
			reports[i] = s.ended.m[a]
		}
	}
}

// KeepEnded caches the reports at these indexes of a list. They must not be changed afterwards.
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
			e.m, e.bytes = map[ListEntry][]byte{}, 0 // listed ones are cached again
		}
		if _, ok := e.m[list[i]]; !ok {
			e.m[list[i]] = reports[i]
			e.bytes += size
		}
	}
}
