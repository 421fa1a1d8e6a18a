// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
)

// phase is the AM's progress.
type phase int

const (
	phaseNew         phase = iota // not registered with this proxy
	phaseRegistering              // its registration is under way
	phaseRunning
	phaseFinishing // it has finished; home may not have confirmed that yet
	phaseOver      // only the end of UAMs is left
	phaseDone
)

// Session is the state machine of one attempt. See the package for the duties of its driver. It is not safe for
// concurrent use.
type Session struct {
	cfg     Config
	attempt creel.AttemptID
	rnd     *rand.Rand

	now    time.Time
	ticked time.Time // time of the last Tick
	acts   actions

	phase  phase
	am     conversation
	ledger ledger
	placer placer
	local  emplacer
	record recorder
	links

	inherited bool // the AM was finishing with the earlier proxy, and home may not have received the finish
	abandoned bool // home gave up the attempt; the application may have another one
	blind     bool // finishing; only home knows whether the AM had registered

}

// Options are the parameters of a new session.
type Options struct {
	Config  Config
	Attempt creel.AttemptID
	Home    creel.SubclusterID
	User    string // the application's owner, for UAMs
	// Record is the application's record in the store, nil if there is none. It is of this attempt after a restart of
	// the proxy, and of an earlier attempt after a restart of the AM. Its UAMs are attached again.
	Record *Record
	Rand   *rand.Rand
	Issuer Issuer // nil: members place opportunistic containers, not the session
}

// Attempt that the session is of.
func (s *Session) Attempt() creel.AttemptID { return s.attempt }

// Queue of the application as home named it, "" before.
func (s *Session) Queue() creel.QueuePath { return s.record.Queue }

// Reasons of the last split of each group of asks that still wants something.
func (s *Session) Reasons() []policies.Reason {
	var out []policies.Reason
	for _, g := range s.ledger.groups {
		if g.need == 0 {
			continue
		}
		r := g.reason
		r.Candidates = slices.Clone(r.Candidates)
		for i := range r.Candidates {
			c := &r.Candidates[i]
			if m := s.member(c.Member); m.state == linkFailed && c.Excluded != "" {
				c.Excluded = m.out
			}
		}
		out = append(out, r)
	}
	return out
}

// Asked returns the number of containers that a member is asked for by the session's state. settled reports whether
// the member must agree: no call to it is under way, and nothing waits to be sent. The simulator compares the number
// with the member.
func (s *Session) Asked(id creel.SubclusterID) (n int64, settled bool) {
	i, ok := s.find(id)
	if !ok {
		return 0, false
	}
	m := s.members[i]
	settled = s.phase == phaseRunning && m.state == linkUp && m.call.state == callNone
	return s.ledger.outstanding(m) - s.ledger.placing(m), settled && s.ledger.settled(m)
}

// TakeWaits returns the waiting times of the containers granted since the last call of TakeWaits; false if there were
// none.
func (s *Session) TakeWaits() (waitstats.Histogram, bool) {
	return s.ledger.takeWaits()
}

// saveRecord requests a save of the record if it has changed and no save is under way.
func (s *Session) saveRecord() {
	at, due := s.record.saveDue()
	if s.phase == phaseNew || s.blind || !due || s.now.Before(at) {
		return
	}
	s.acts.do(s.record.save())
}

// unknownID is sent if only an earlier proxy knew the response id. It is never the current id, so the
// ResourceManager's refusal names the expected one.
const unknownID int32 = -1

func (s *Session) renumbers(m *link) bool { return m.renumbers(s.record.Type, &s.cfg) }

// recordUAM adds a UAM to the record; the member waits until the record is durable.
func (s *Session) recordUAM(m *link) {
	m.gen = s.record.put(m.toRecord())
}

// silent reports whether the AM has not called for so long that it may be dead. Then its UAMs stay, but the session
// starts and requests nothing new for it.
func (s *Session) silent() bool { return s.am.silentSince(s.now, s.cfg.KeepAlive) }

// asks reports whether the AM's asks may be placed, or placed again.
func (s *Session) asks() bool { return s.phase == phaseRunning && !s.silent() }

// survivors returns the containers to keep. If containers end with their attempt, it releases all, as home does.
func (s *Session) survivors(left []*yarnpb.ContainerProto) []*yarnpb.ContainerProto {
	if !s.record.endsWithAttempt() {
		return left
	}
	s.ledger.withdrawKept(left)
	return nil
}

// inherit records that a UAM of an earlier attempt has reported that attempt's containers. Later grants are recorded
// as this attempt's. It returns the containers to keep.
func (s *Session) inherit(m *link, left []*yarnpb.ContainerProto) []*yarnpb.ContainerProto {
	m.inherit()
	s.recordUAM(m)
	return s.survivors(left)
}
