// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// NewSession makes the session of an attempt that the proxy has not seen.
func NewSession(o Options) (*Session, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.Home == "" || o.Attempt.IsZero() || o.Rand == nil {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "no session",
			Why:  "attempt, home or random source is missing",
		}
	}
	s := &Session{
		cfg: o.Config, attempt: o.Attempt, rnd: o.Rand,
		record: recorder{Record: Record{Attempt: o.Attempt, Home: o.Home, User: o.User}},
	}
	s.am = conversation{
		cfg: &s.cfg, attempt: o.Attempt, acts: &s.acts, out: &yarnpb.AllocateResponseProto{},
	}
	s.ledger = ledger{cfg: &s.cfg, links: &s.links, held: newContainers(), blacklist: map[string]bool{}}
	s.placer = placer{cfg: &s.cfg, links: &s.links, ledger: &s.ledger, rnd: o.Rand}
	s.local = emplacer{o.Issuer, o.Attempt, &s.links, &s.ledger, &s.placer, &s.record}
	s.home = s.member(o.Home)
	s.home.home = true
	if r := o.Record; r != nil {
		s.restore(r)
	}
	return s, nil
}

// restore continues from the record of an earlier proxy, or of an earlier attempt.
func (s *Session) restore(r *Record) {
	if s.ledger.restored = s.record.inherits(r); s.ledger.restored {
		s.home.memoryOnly = comparesMemoryOnly(r.Answer)
	}
	s.local.restore(s.home, r, s.ledger.restored)
	if len(r.Completions) > 0 {
		s.record.keep(r.Completions)
		s.ledger.end(r.Completions)
		s.am.complete(r.Completions)
	}
	for i := range s.record.UAMs {
		t := &s.record.UAMs[i]
		m := s.member(t.Member)
		if m.home {
			continue
		}
		t.Inherited = t.Inherited || !s.ledger.restored
		m.attach(t, s.record.gen)
	}
	if s.record.Ending {
		s.end("it was finishing when its proxy stopped", nil)
		s.inherited = s.ledger.restored
	}
}

// Step takes one event and returns the actions to perform, in order. The slice is valid until the next Step.
func (s *Session) Step(now time.Time, e Event) []Action {
	s.now, s.acts = now, s.acts[:0]
	if s.phase == phaseDone {
		if c, ok := e.(FromAM); ok && c.Finish != nil && s.am.finished != nil {
			s.acts.do(Reply{Call: c.Call, Finish: s.am.finished}) // the first answer was lost
		} else if ok {
			s.am.refuse(c.Call, s.am.over())
		}
		return s.acts
	}
	switch e := e.(type) {
	case FromAM:
		if s.abandoned {
			s.am.refuse(e.Call, s.am.over())
			break
		}
		s.am.heard = now
		switch {
		case e.Register != nil:
			s.onRegister(e.Call, e.Register)
		case e.Allocate != nil:
			s.onAllocate(e.Call, e.Allocate)
		case e.Finish != nil:
			s.onFinish(e.Call, e.Finish)
		}
	case Answered:
		s.onAnswered(e)
	case Numbered:
		s.onNumbered(e)
	case Launched:
		s.onLaunched(e)
	case LaunchFailed:
		s.onLaunchFailed(e)
	case Dropped:
		s.onDropped(e)
	case Saved:
		s.record.saved(e.Number)
	case SaveFailed:
		s.onSaveFailed(e)
	case Saw:
		if s.placer.see(e) {
			s.record.changed() // the store is without this session's record
		}
	case Labelled:
		s.onLabelled(e)
	case Ended:
		s.onEnded(e.Why)
	case Tick:
		s.onTick()
	}
	s.settle()
	return s.acts
}

// settle makes all progress that is possible now.
func (s *Session) settle() {
	if s.phase == phaseDone {
		return
	}
	s.placer.closeSlowMembers(s.now)
	s.ledger.passOnChanges()
	if s.asks() {
		s.placer.placeNew(s.now, s.record.Queue, s)
		s.local.place(s.now, s.am.out)
	}
	s.endIdleUAMs()
	s.saveRecord()
	s.callMembers()
	s.saveRecord()
	s.answerAM()
	s.saveRecord()
	s.endIfDone()
}

func (s *Session) onTick() {
	s.ticked = s.now
	for _, m := range s.members {
		m.retry(s.now, s.renumbers(m))
	}
	if s.asks() {
		s.placer.placeWaiting(s.now, s.record.Queue, s)
	}
	s.ledger.sweep(s.now)
	// Home also gives up an AM after AMExpiry, and the next attempt takes over these UAMs. So the next attempt has
	// another AMExpiry to begin. The driver asks home whether the application is over.
	if !s.am.heard.IsZero() && s.now.Sub(s.am.heard) > 2*s.cfg.AMExpiry {
		if s.phase > phaseNew && s.phase < phaseOver {
			s.end("the AM has been silent for "+s.now.Sub(s.am.heard).String(), nil)
		}
		s.inherited = false
	}
	if s.phase == phaseRegistering && s.am.late(s.now) && s.am.answer == nil {
		s.am.refuseRegisters(&creel.Error{
			Kind: creel.ErrUnavailable,
			What: "home does not answer",
			Why:  "the ResourceManager of " + string(s.home.id) + " could not be reached",
			Try:  "try again",
		})
		s.phase = phaseNew
		s.home.state = linkNone
		s.home.call.drop()
	}
	if len(s.am.finishes) > 0 && s.am.late(s.now) {
		silent := &creel.Error{Kind: creel.ErrUnavailable, What: "home does not answer", Try: "try again"}
		if s.blind {
			s.unblind(silent)
		}
		s.am.refuseFinishes(silent)
	}
}
