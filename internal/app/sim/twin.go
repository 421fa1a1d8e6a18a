// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
)

func isNotFound(err error) bool { return errors.Is(err, creel.ErrApplicationNotFound) }

// appReport is what a proxy reads in an application's report.
type appReport struct {
	user    string
	state   creel.ApplicationState
	attempt creel.AttemptID
	token   bool
}

func (d *driver) report(c *cluster, app creel.ApplicationID, then func(appReport, error)) {
	call(d.w, d.p.host, c.host, memberTime, func(reply func(appReport, error)) {
		v, err := c.app(app)
		reply(appReport{user: v.User, state: v.State, attempt: v.Attempt, token: v.Token}, err)
	}, func(v appReport, err error) {
		if !d.gone {
			then(v, err)
		}
	})
}

// owner finds who owns an application: its home knows.
func (d *driver) owner(known string, then func(string, error)) {
	if known != "" {
		then(known, nil)
		return
	}
	d.report(d.member(d.home), d.attempt.Application, func(v appReport, err error) { then(v.user, err) })
}

// launch starts a twin by the steps of Hadoop's unmanaged launcher: submit,
// wait until the attempt is launched, read its token from the report.
func (d *driver) launch(l amrmproxy.Launch) {
	w, began := d.w, d.w.now
	failed := func(err error) {
		w.mark("no twin", int64(l.Application.ID), 0)
		w.say("no twin of %s in %s: %v", l.Application, l.Member, err)
		d.step(amrmproxy.LaunchFailed{Member: l.Member, Err: err})
	}
	c := d.member(l.Member)
	var look func(user string, pause time.Duration)
	look = func(user string, pause time.Duration) {
		d.report(c, l.Application, func(v appReport, err error) {
			switch {
			case err != nil:
				failed(err)
			case v.token:
				w.mark("twin", int64(l.Application.ID), c.number)
				d.step(amrmproxy.Launched{Member: l.Member, Attempt: v.attempt, Token: tokenOf(v.attempt), User: user})
			case v.state.Ended(), v.state == creel.AppRunning:
				failed(
					&creel.Error{Kind: creel.ErrConflict, What: fmt.Sprintf("the twin in %s is %s", l.Member, v.state)},
				)
			case w.now.Sub(began) > twinTime:
				failed(
					&creel.Error{
						Kind: creel.ErrUnavailable,
						What: fmt.Sprintf("the twin in %s was not launched in time", l.Member),
					},
				)
			default:
				w.on(d.p.host, pause, func() { look(user, min(2*pause, 200*time.Millisecond)) })
			}
		})
	}
	d.owner(l.User, func(user string, err error) {
		if err != nil {
			failed(err)
			return
		}
		s := &rm.Submission{
			ID:             l.Application,
			User:           user,
			Name:           l.Name,
			Type:           "YARN",
			Queue:          string(l.Queue),
			Unmanaged:      true,
			KeepContainers: true,
			MaxAttempts:    1,
			HasPriority:    true,
		}
		call(
			w,
			d.p.host,
			c.host,
			memberTime,
			func(reply func(bool, error)) { c.submit(s, reply) },
			func(_ bool, err error) {
				if d.gone {
					return
				}
				if err != nil {
					failed(err)
					return
				}
				look(user, 5*time.Millisecond)
			},
		)
	})
}

// drop kills a twin; one that is not there is success.
func (d *driver) drop(a amrmproxy.Drop, began time.Time, pause time.Duration) {
	w, c := d.w, d.member(a.Member)
	call(
		w,
		d.p.host,
		c.host,
		memberTime,
		func(reply func(bool, error)) { c.kill(a.Application, reply) },
		func(done bool, err error) {
			switch {
			case d.gone:
			case isNotFound(err) || err == nil && done:
				d.step(amrmproxy.Dropped{Member: a.Member})
			case err != nil || w.now.Sub(began) > memberTime:
				if err == nil {
					err = errTimeout
				}
				d.step(amrmproxy.Dropped{Member: a.Member, Err: err})
			default:
				w.on(d.p.host, pause, func() { d.drop(a, began, min(2*pause, 200*time.Millisecond)) })
			}
		},
	)
}

// spread is a session's line to the store: amrmproxy/rpc's record in virtual time.
type spread struct {
	w        *World
	at       *host
	attempt  creel.AttemptID
	name     string
	revision int64
	olders   []creel.AttemptID
	tried    [][]byte // states sent since the revision, of which one may be in the store
}

// load finds the application's record: ours, else the latest of an earlier
// attempt, else nil.
func (r *spread) load(then func(*amrmproxy.Record, error)) {
	w := r.w
	call(
		w,
		r.at,
		w.storeAt,
		storeTime,
		func(reply func([]statestore.Spread, error)) { reply(w.store.SpreadsOf(r.attempt.Application), nil) },
		func(found []statestore.Spread, err error) {
			if err != nil {
				then(
					nil,
					&creel.Error{
						Kind: creel.ErrUnavailable,
						What: "the store cannot tell where " + r.attempt.Application.String() + " lives",
						Why:  err.Error(),
						Try:  "try again",
					},
				)
				return
			}
			var best *statestore.Spread
			for i := range found {
				switch c := found[i].Attempt.Compare(r.attempt); {
				case c > 0:
					then(
						nil,
						&creel.Error{
							Kind: creel.ErrAttemptNotFound,
							What: r.attempt.String() + " is superseded",
							Try:  "this master should stop",
						},
					)
					return
				case c < 0:
					r.olders = append(r.olders, found[i].Attempt)
				default:
					r.revision = found[i].Revision
				}
				if best == nil || found[i].Attempt.Compare(best.Attempt) > 0 {
					best = &found[i]
				}
			}
			if best == nil {
				then(nil, nil)
				return
			}
			plain, err := statestore.Open(w.secret, []byte(best.Attempt.String()), best.State)
			if err != nil {
				then(nil, err)
				return
			}
			out := &amrmproxy.Record{}
			if err := out.UnmarshalBinary(plain); err != nil {
				then(nil, err)
				return
			}
			then(out, nil)
		},
	)
}

// nonces are the world's random source as a reader.
type nonces struct{ rnd *rand.Rand }

func (n nonces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(n.rnd.Uint32())
	}
	return len(b), nil
}

// save writes the record, or removes it when it is nil.
func (r *spread) save(rec *amrmproxy.Record, then func(error)) {
	w := r.w
	if rec == nil {
		attempts := append([]creel.AttemptID{r.attempt}, r.olders...)
		call(w, r.at, w.storeAt, storeTime, func(reply func(bool, error)) {
			for _, a := range attempts {
				w.store.DropSpread(a)
			}
			reply(true, nil)
		}, func(_ bool, err error) { then(err) })
		return
	}
	plain, err := rec.MarshalBinary()
	var sealed []byte
	if err == nil {
		sealed, err = statestore.Seal(nonces{w.rnd}, w.secret[0], []byte(r.attempt.String()), plain)
	}
	if err != nil {
		w.audit.breach("the spread of %s cannot be written: %v", r.attempt, err)
		return
	}
	s := statestore.Spread{Attempt: r.attempt, Revision: r.revision, Home: rec.Home, Proxy: r.name, State: sealed}
	for _, t := range rec.Twins {
		phase := "running"
		switch {
		case rec.Ending:
			phase = "ending"
		case t.Token == nil:
			phase = "launching"
		}
		s.Members = append(s.Members, statestore.SpreadMember{Member: t.Member, Phase: phase})
	}
	r.put(s, then)
}

// put sends a spread to the store. A conflict with a save of our own whose
// answer was lost is none: the revision is then the store's.
func (r *spread) put(s statestore.Spread, then func(error)) {
	w := r.w
	call(
		w,
		r.at,
		w.storeAt,
		storeTime,
		func(reply func(int64, error)) { reply(w.store.SaveSpread(s)) },
		func(revision int64, err error) {
			switch {
			case errors.Is(err, creel.ErrConflict) && len(r.tried) > 0:
				call(
					w,
					r.at,
					w.storeAt,
					storeTime,
					func(reply func(statestore.Spread, error)) { reply(w.store.Spread(r.attempt)) },
					func(is statestore.Spread, lookErr error) {
						switch {
						case lookErr == nil && slices.ContainsFunc(r.tried, func(state []byte) bool { return bytes.Equal(state, is.State) }):
							r.revision, s.Revision, r.tried = is.Revision, is.Revision, nil
							r.put(s, then)
						case lookErr != nil && !errors.Is(lookErr, creel.ErrAttemptNotFound):
							then(lookErr)
						default:
							then(r.notOurs(err))
						}
					},
				)
			case errors.Is(err, creel.ErrConflict):
				then(r.notOurs(err))
			case err != nil:
				r.tried = append(r.tried, s.State)
				then(err)
			default:
				r.revision, r.tried = revision, nil
				then(nil)
				r.dropOlder()
			}
		},
	)
}

func (r *spread) notOurs(err error) error {
	return &creel.Error{
		Kind: creel.ErrStale,
		What: "the spread of " + r.attempt.String() + " is not ours any more",
		Why:  err.Error(),
	}
}

// dropOlder removes the records of earlier attempts: their twins are in ours now.
func (r *spread) dropOlder() {
	if len(r.olders) == 0 {
		return
	}
	olders, w := r.olders, r.w
	r.olders = nil
	call(w, r.at, w.storeAt, storeTime, func(reply func(bool, error)) {
		for _, a := range olders {
			w.store.DropSpread(a)
		}
		reply(true, nil)
	}, func(_ bool, err error) {
		if err != nil {
			r.olders = append(r.olders, olders...) // at the next save
		}
	})
}
