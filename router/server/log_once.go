// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"

	"github.com/creelrm/creel"
)

// logOnceMost bounds the stored names.
const logOnceMost = 1000

// logOnce has the names that were logged.
type logOnce struct {
	mu    sync.Mutex
	names map[string]bool
}

// first reports whether a name occurs for the first time.
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

// Unlisted counts fields without a merge rule, for which the first member's value is used. It logs the first
// occurrence of each field.
func (s *Server) Unlisted(typ, field string) {
	s.counts.Unlisted.Add(1)
	if s.logOnce.first(typ + "." + field) {
		s.conf.Log.Warn("no merge rule for a field; using the first subcluster's value",
			"field", typ+"."+field, "see", "docs/reference/merging.md")
	}
}

// LeftOut logs once that answers to a call do not include a member, since its release lacks the call.
func (s *Server) LeftOut(call string, member creel.SubclusterID, err error) {
	if s.logOnce.first(call + " of " + string(member) + ": " + err.Error()) {
		s.conf.Log.Warn("subcluster left out: its release lacks the call",
			"call", call, "subcluster", string(member), "error", err)
	}
}
