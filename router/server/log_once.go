// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"

	"github.com/creelrm/creel"
)

// logOnceMost bounds the names that are remembered.
const logOnceMost = 1000

// logOnce are names that the log has had once.
type logOnce struct {
	mu    sync.Mutex
	names map[string]bool
}

// first reports whether a name is seen for the first time.
func (t *logOnce) first(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[name] || len(t.names) >= logOnceMost {
		return false
	}
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[name] = true
	return true
}

// Unlisted counts a field of a member's answer that has no merge rule, so that the first member's stays, and logs its
// first occurrence.
func (s *Server) Unlisted(typ, field string) {
	s.counts.Unlisted.Add(1)
	if s.logOnce.first(typ + "." + field) {
		s.conf.Log.Warn("no merge rule for a field; using the first subcluster's value",
			"field", typ+"."+field, "see", "docs/reference/merging.md")
	}
}

// LeftOut logs once that answers to a call are without a member whose release does not have the call.
func (s *Server) LeftOut(call string, member creel.SubclusterID, err error) {
	if s.logOnce.first(call + " of " + string(member) + ": " + err.Error()) {
		s.conf.Log.Warn("subcluster left out: its release lacks the call",
			"call", call, "subcluster", string(member), "error", err)
	}
}
