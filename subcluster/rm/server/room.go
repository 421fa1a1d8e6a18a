// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/creelrm/creel/subcluster/rm/journal"
)

// On a full disk a ResourceManager is read-only: it answers reads, serves its AMs and nodes, and records their events
// on the journal's reserve. It accepts no application, no token and no request that would only make the journal grow,
// until there is space again. Kills, completions and routers' queries are always accepted.

// freeRoom is the advice for users.
const freeRoom = "free space on it, or enlarge it; the ResourceManager then continues by itself"

// JournalRoom returns how full the disk of the journal is; zero where nothing is
// kept.
func (s *Server) JournalRoom() journal.Room {
	if s.durability.journal == nil {
		return journal.Room{}
	}
	return s.durability.journal.Room()
}

// JournalFree returns how many bytes the disk of the journal has left; kept reports
// whether there is a journal.
func (s *Server) JournalFree() (free int64, kept bool) {
	if s.durability.journal == nil {
		return 0, false
	}
	free, err := s.durability.journal.Free()
	return free, err == nil
}

// Refusing returns why new applications are not taken, empty when they are.
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
