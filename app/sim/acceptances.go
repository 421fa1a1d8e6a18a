// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/creelrm/creel"
)

// A member that cannot disown, like Hadoop's, would run the repeat of an application that has ended and that it does
// not list any more. Routers record in which run of its process such a member accepted an application. They reject a
// repeat while that run lasts. See docs/adr/0013-fence.md, "An end that no router saw".

// runFresh is the time for which a router remembers a run, like lifeFresh of router/server.
const runFresh = 10 * time.Second

// memberRun is a run of a ResourceManager's process that a router remembers: its start, in ms.
type memberRun struct {
	start int64
	asked time.Time
}

// life returns the run of a member's process like router/server.life.
func (t *task) life(_ context.Context, id creel.SubclusterID, fresh bool) (int64, error) {
	r := t.r
	c := r.w.cluster(id)
	if !c.hadoop {
		return 0, nil
	}
	last, asked := r.runs[id], r.w.now
	if !fresh && asked.Sub(last.asked) < runFresh {
		return last.start, nil
	}
	start, err := step(t, c.host, func(reply func(int64, error)) { reply(c.start.UnixMilli(), nil) })
	if err != nil {
		r.w.audit.unrecorded(t.app)
		return 0, err
	}
	if asked.After(r.runs[id].asked) {
		r.runs[id] = memberRun{start, asked}
	}
	return start, nil
}

func (h homes) Accept(_ context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	w := h.t.r.w
	_, err := step(h.t, w.storeAt, func(reply func(bool, error)) {
		reply(placing(w, true, func() (bool, error) {
			return true, w.store.Accept(w.storeClock(), app, home, life)
		}))
	})
	if err != nil {
		w.audit.unrecorded(app)
	}
	return err
}

func (h homes) AcceptedIn(_ context.Context, app creel.ApplicationID) (int64, error) {
	w := h.t.r.w
	return step(h.t, w.storeAt, func(reply func(int64, error)) {
		reply(placing(w, false, func() (int64, error) { return w.store.AcceptedIn(w.storeClock(), app) }))
	})
}

// unrecorded records that a router failed to record an acceptance. Then a repeat may run.
func (a *auditor) unrecorded(app creel.ApplicationID) { a.unproven[app] = true }

// acceptedIn checks that the run in which a member accepted an application is in the store once the user knows of the
// acceptance. A router may remember the run before for a time.
func (a *auditor) acceptedIn(app creel.ApplicationID, c *cluster) {
	if !c.hadoop || a.forgetful() || a.unproven[app] || a.w.now.Sub(c.began) < runFresh+submitTime {
		return
	}
	if ended, err := a.w.store.Ended(a.w.storeClock(), app); err != nil || !ended.IsZero() {
		return // the end in the store prevents another run
	}
	life, err := a.w.store.AcceptedIn(a.w.storeClock(), app)
	a.check(err == nil && life == c.start.UnixMilli(), "%s is accepted by %s, whose run since %v is not recorded: %d (%v)",
		app, c.id, c.start.Sub(origin), life, err)
	a.fault("acceptances recorded with the run of their member")
}

// provesEnd reports whether the store proves that a member cannot have lost an application that it does not list.
func (a *auditor) provesEnd(app creel.ApplicationID, c *cluster) bool {
	life, err := a.w.store.AcceptedIn(a.w.storeClock(), app)
	return err == nil && c.hadoop && life == c.start.UnixMilli()
}
