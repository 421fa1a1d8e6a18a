// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// reconcile runs one round of statestore/reconcile. Its list calls are not simulated: it reads all serving members at
// one moment.
func (w *World) reconcile() {
	w.after(time.Minute, w.reconcile)
	if !w.storeAt.up || w.asleep(w.storeAt) || w.ill != well || w.rebuilding {
		return
	}
	serves := func(c *cluster) bool { return c.up && !w.asleep(c.host) && !w.apart(w.storeAt, c.host) }
	found := map[away]bool{}
	for _, c := range w.clusters {
		if !serves(c) {
			continue
		}
		for v := range c.m.Apps {
			home, err := w.store.Home(w.storeClock(), v.ID)
			if v.Unmanaged || v.State.Ended() || err != nil || home == c.id {
				continue
			}
			if at := (away{v.ID, c.id}); !w.away[at] {
				found[at] = true
				continue
			}
			its := w.cluster(home)
			there, known := its.m.App(v.ID)
			var run *statestore.ReportedApplication
			if known && !there.Unmanaged {
				r := reported(&there)
				run = &r
			}
			switch verdict, why := statestore.JudgeAway(serves(its), run, reported(v)); verdict {
			case statestore.AwayEnd:
				w.audit.keepsFurther(v.ID, c, its)
				w.audit.fault("applications ended where they are not at home")
				w.say("%s is ended in %s: %s", v.ID, c.id, why)
				c.kill(v.ID, why, func(bool, error) {})
			case statestore.AwayRehome:
				w.audit.fault("homes that follow their applications")
				w.say("%s is at home in %s now: %s", v.ID, c.id, why)
				if _, _, err := w.store.Move(w.storeClock(), v.ID, home, c.id, 0, nil); err != nil {
					w.audit.breach("the home of %s cannot be moved: %v", v.ID, err)
				}
			}
		}
	}
	w.away = found
}

// away is an application that runs away from its home.
type away struct {
	app creel.ApplicationID
	at  creel.SubclusterID
}
