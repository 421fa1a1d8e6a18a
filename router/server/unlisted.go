// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
)

// unlistedMost bounds the names of fields that are remembered.
const unlistedMost = 1000

// unlisted are names of fields that have been told once.
type unlisted struct {
	mu    sync.Mutex
	names map[string]bool
}

// first reports whether a name is seen for the first time.
func (u *unlisted) first(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names[name] || len(u.names) >= unlistedMost {
		return false
	}
	if u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[name] = true
	return true
}

// Unlisted counts a field of a member's answer that has no merge rule, so that
// the first member's stays, and logs it at its first sight.
func (s *Server) Unlisted(typ, field string) {
	s.counts.Unlisted.Add(1)
	if s.unlisted.first(typ + "." + field) {
		s.conf.Log.Warn("a field that no merge rule lists: the first subcluster's is kept",
			"field", typ+"."+field, "see", "docs/reference/merging.md")
	}
}
