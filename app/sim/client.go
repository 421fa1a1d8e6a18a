// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
)

// submission is a user's script that submits one job: a new id, the submission, and the same at the next router until
// one accepts it.
type submission struct {
	w   *World
	job int
	due time.Time
	app creel.ApplicationID
	try int

	accepted time.Time
}

func (w *World) submitAll() {
	for i := range w.cfg.Jobs {
		s := &submission{w: w, job: i, due: w.now.Add(warmUp + w.cfg.Jobs[i].Submit)}
		w.at(s.due, func() { w.audit.due(); s.begin() })
	}
}

// warmUp is the time for nodes and members to register before the first job.
const warmUp = 5 * time.Second

func (s *submission) router() *gateway { return s.w.routers[(s.job+s.try)%len(s.w.routers)] }

func (s *submission) again() {
	s.try++
	s.w.after(100*time.Millisecond, func() {
		if s.app.IsZero() {
			s.begin()
		} else {
			s.submit()
		}
	})
}

func (s *submission) begin() {
	r := s.router()
	call(
		s.w,
		s.w.user,
		r.host,
		submitTime,
		func(reply func(creel.ApplicationID, error)) { r.newApplication(reply) },
		func(id creel.ApplicationID, err error) {
			if err != nil {
				s.again()
				return
			}
			s.app = id
			s.w.audit.named(s)
			s.submit()
		},
	)
}

func (s *submission) submit() {
	r := s.router()
	if s.w.faulty && s.w.chance(s.w.faults.Twice) {
		s.w.audit.fault("submissions through two routers at once")
		s.through(s.w.routers[(s.job+s.try+1)%len(s.w.routers)])
	}
	call(s.w, s.w.user, r.host, submitTime+5*time.Second, func(reply func(router.Outcome, error)) {
		r.submit(s, s.app, func(o router.Outcome) { reply(o, o.Err) })
	}, func(o router.Outcome, err error) {
		switch {
		case err == nil:
			s.w.mark("accepted", int64(s.app.ID), int64(s.job))
			s.w.audit.accepted(s, o.Home)
			s.accepted, s.w.taken = s.w.now, append(s.w.taken, s)
		case errors.Is(err, creel.ErrEnded) && !s.w.audit.apps[s.app].ended.IsZero():
			s.w.say("%s has ended, and its acceptance never reached its user", s.app)
		case errors.Is(err, creel.ErrInvalidRequest),
			errors.Is(err, creel.ErrNotPermitted),
			errors.Is(err, creel.ErrInvalidResource):
			s.w.audit.refused(s, err)
		default:
			s.w.say("submission of %s through %s: %v", s.app, r.name, err)
			s.again()
		}
	})
}

// through sends the submission by another router too, and ignores the answer.
func (s *submission) through(r *gateway) {
	call(s.w, s.w.user, r.host, submitTime+5*time.Second, func(reply func(router.Outcome, error)) {
		r.submit(s, s.app, func(o router.Outcome) { reply(o, o.Err) })
	}, func(router.Outcome, error) {})
}

// repeatEnded makes a user repeat the submission of an application that has ended and that its home does not list any
// more. In every second case the store knows the end, as after the round of statestore/tidy.
func (w *World) repeatEnded(which uint64, _ time.Duration) {
	if w.audit.forgetful() || w.rebuilding {
		return // the store may have lost the record of the home
	}
	ended := slices.DeleteFunc(slices.Clone(w.taken), func(s *submission) bool {
		app := w.audit.apps[s.app]
		if app.ended.IsZero() || app.ams > 0 || !app.home.up {
			return true
		}
		_, listed := w.clusters[app.home.index].m.App(s.app)
		return listed
	})
	if len(ended) == 0 {
		return
	}
	s := ended[which%uint64(len(ended))]
	if which>>16%2 == 0 {
		err := w.store.Forget(w.storeClock(), s.app, w.audit.apps[s.app].home.id, endKept)
		w.audit.check(err == nil, "the end of %s is not recorded: %v", s.app, err)
	}
	home := w.audit.apps[s.app].home.index
	before := w.clusters[home]
	run, proven := before.start, w.audit.provesEnd(s.app, before)
	w.audit.fault("submissions repeated after the end")
	if proven {
		w.audit.fault("repeats in the run that accepted them")
	}
	w.say("%s is submitted again after its end", s.app)
	r := s.router()
	call(w, w.user, r.host, submitTime+5*time.Second, func(reply func(router.Outcome, error)) {
		r.submit(s, s.app, func(o router.Outcome) { reply(o, o.Err) })
	}, func(o router.Outcome, err error) {
		c := w.clusters[home]
		v, listed := c.m.App(s.app)
		listed = listed && v.State.Ended()                     // a restart may lose the end of the listing
		mayRun := c.hadoop && (!proven || !c.start.Equal(run)) // it may have lost the application
		w.audit.check(err != nil || listed || mayRun || w.audit.forgetful(), "%s has ended and is accepted again by %s",
			s.app, o.Home)
		if errors.Is(err, creel.ErrEnded) {
			w.audit.fault("repeats rejected since their application has ended")
		}
	})
}

// endKept is the time for which the store keeps the home of an ended application: longer than a run.
const endKept = 24 * time.Hour
