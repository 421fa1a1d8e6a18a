// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/creelrm/creel/subcluster/rm/journal"
)

// On a full disk a ResourceManager is read-only: it answers reads, serves its AMs and nodes, and records their events
// on the journal's reserve. Until there is space again, it accepts no application, no token and no request that would
// only make the journal grow. Kills, completions and routers' queries are always accepted.

// freeRoom is the advice for administrators.
const freeRoom = "free space on it, or enlarge it; the ResourceManager then continues by itself"

// JournalRoom returns the state of the journal's disk space; zero without a journal.
func (s *Server) JournalRoom() journal.Room {
	if s.durability.disk == nil {
		return journal.Room{}
	}
	return s.durability.disk.Room()
}

// JournalFree returns the free bytes on the journal's disk; kept reports whether there is a journal.
func (s *Server) JournalFree() (free int64, kept bool) {
	if s.durability.disk == nil {
		return 0, false
	}
	free, err := s.durability.disk.Free()
	return free, err == nil
}

// Refusing returns why new applications are rejected, empty if they are accepted.
func (s *Server) Refusing() string {
	if !s.JournalRoom().Full {
		return ""
	}
	return "the disk of its journal is full"
}

// roomChanged logs a change of the journal's disk space.
func (s *Server) roomChanged(r journal.Room) {
	args := []any{"dir", s.cfg.Dir, "reserve_bytes", r.Reserve, "try", freeRoom}
	switch {
	case r.Waits:
		s.log.Error("journal disk full and its reserve used up: changes wait", args...)
	case r.Full:
		s.log.Error("journal disk full: running applications continue, new ones are rejected", args...)
	default:
		s.log.Warn("journal disk has space again: new applications are accepted", args[:4]...)
	}
}
