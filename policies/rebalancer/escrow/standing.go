// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"time"

	"github.com/creelrm/creel"
)

// Standing is a subcluster's side for one queue whose cap is a setting of a ResourceManager without leases. An agent
// makes requests on behalf of Hadoop's ResourceManager. The setting stays in force while the agent or its store is
// unavailable. So the record counts it until the member reports another value, without a time limit.
//
// A higher cap counts before the change is sent. A lower cap counts only after the new setting was read. A change
// without an answer may still take effect within Late.
type Standing struct {
	ID    creel.SubclusterID
	Epoch int64
	Late  time.Duration
	// Recover is the time until which changes by the previous agent process may take effect: this agent's start plus
	// Late.
	Recover time.Time
	// Fixed: the setting cannot be changed, and its value counts.
	Fixed bool

	limit  creel.Resource // in force, or sent
	late   creel.Resource // the highest value of changes without an answer
	until  time.Time      // changes without an answer may take effect until then
	target creel.Resource
	given  bool // target is from an answer
}

// Seen records the limit in force at the ResourceManager. It must have been read while no change was under way.
func (s *Standing) Seen(limit creel.Resource) { s.limit = limit }

// Holds returns the highest limit that may be in force now or later.
func (s *Standing) Holds(now time.Time) creel.Resource {
	if now.Before(s.until) {
		return s.limit.Max(s.late)
	}
	return s.limit
}

// Ask makes a request. uses and needs must have been read after the limit passed to Seen.
func (s *Standing) Ask(now time.Time, uses, needs creel.Resource) Request {
	r := Request{
		Member: s.ID, Epoch: s.Epoch, Holds: s.Holds(now), Uses: uses, Needs: needs.Max(uses),
		Recovering: now.Before(s.Recover), Standing: true, Fixed: s.Fixed,
	}
	if s.Fixed {
		r.Needs = r.Needs.Min(r.Holds.Max(uses)) // more is of no use to it
	}
	return r
}

// Granted applies the answer. It is called only after the record has been written.
func (s *Standing) Granted(g Grant) {
	s.target, s.given = g.Cap, !s.Fixed
}

// Change returns the limit to set now, if it differs from the limit in force. From now on the higher of the two
// counts.
func (s *Standing) Change() (to creel.Resource, due bool) {
	if !s.given || s.target.Equal(s.limit) {
		return to, false
	}
	s.given = false
	return s.target, true
}

// Changed records the outcome of a change. If done is false, the outcome is unknown.
func (s *Standing) Changed(now time.Time, to creel.Resource, done bool) {
	if done {
		s.limit = to
		return
	}
	s.late, s.until = s.Holds(now).Max(to), now.Add(s.Late)
}
