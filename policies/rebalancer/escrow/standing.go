// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"time"

	"github.com/creelrm/creel"
)

// Standing is a subcluster's side for one queue whose cap is a setting of a ResourceManager without leases: Hadoop's,
// on whose behalf an agent asks. The setting stays in force when the agent, or its store, is away. So the record
// counts it until the member reports otherwise, however long that takes.
//
// A cap counts from before a change that raises it is sent, and until a change that lowers it is seen to be in force.
// A change without an answer may take effect for Late.
type Standing struct {
	ID    creel.SubclusterID
	Epoch int64
	Late  time.Duration
	// Recover is until when changes of the agent's former life may take effect: its start
	// and Late.
	Recover time.Time
	// Fixed: the setting cannot be changed, and its value counts.
	Fixed bool

	limit  creel.Resource // in force, or on its way
	late   creel.Resource // the highest value of changes without an answer
	until  time.Time      // they may take effect
	target creel.Resource
	given  bool // target is of an answer
}

// Seen takes over the limit in force at the ResourceManager, read while no change is under way.
func (s *Standing) Seen(limit creel.Resource) { s.limit = limit }

// Holds returns the highest limit that may be in force now, or come into force.
func (s *Standing) Holds(now time.Time) creel.Resource {
	if now.Before(s.until) {
		return s.limit.Max(s.late)
	}
	return s.limit
}

// Ask makes a request. uses and needs were read after Seen's limit was.
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

// Granted applies an answer. It is called only after the record has been written.
func (s *Standing) Granted(g Grant) {
	s.target, s.given = g.Cap, !s.Fixed
}

// Change returns the limit to set now, if it differs from the one in force. From now on the higher of the two counts.
func (s *Standing) Change() (to creel.Resource, due bool) {
	if !s.given || s.target.Equal(s.limit) {
		return to, false
	}
	s.given = false
	return s.target, true
}

// Changed records the outcome of a change: it was made (done), or the outcome is unknown.
func (s *Standing) Changed(now time.Time, to creel.Resource, done bool) {
	if done {
		s.limit = to
		return
	}
	s.late, s.until = s.Holds(now).Max(to), now.Add(s.Late)
}
