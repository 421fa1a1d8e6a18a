// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// passes lets a time pass with all that is due in it.
func passes(w *World, d time.Duration) {
	until := w.now.Add(d)
	for len(w.events.items) > 0 && w.events.items[0].at <= until.UnixNano() {
		e := w.events.pop()
		w.now = time.Unix(0, e.at).UTC()
		e.do.run()
	}
	w.now = until
}

// A container that was never seen running, on a killed node, expires: in ten minutes, and in another ten if the clock
// of its ResourceManager is set forward.
func TestLostContainerMayExpireAgain(t *testing.T) {
	for name, c := range map[string]struct {
		set  time.Duration // by how much the clock is set
		okay bool
	}{
		"left alone":  {0, false},
		"set forward": {time.Minute, true},
		"set back":    {-time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(t)
			of := w.clusters[0]
			app := creel.ApplicationID{ClusterTimestamp: of.start.UnixMilli(), ID: 1}
			id := creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, epochStep, 2)
			m := newAM(of.nodes[0], id, 0, nil)
			m.held[id] = nil
			m.unheard(id, of, true)
			passes(w, 5*time.Minute)
			if c.set != 0 {
				of.setClock(of.skew + c.set)
			}
			passes(w, w.cfg.Expiry+time.Minute)
			if broken := breached(w, "was never reported to its AM"); broken == c.okay {
				t.Errorf("the auditor says %q", w.audit.breaches)
			}
		})
	}
}

// A UAM that its proxy forgot lives for as long as its ResourceManager bears a silent AM,
// which is a ninth more after its clock was set back.
func TestForgottenUAMLivesLongerAfterClockSetBack(t *testing.T) {
	for name, c := range map[string]struct {
		set  time.Duration // by how much the clock is set
		late time.Duration // after the time that is borne, how long the UAM is there
		okay bool
	}{
		"left alone":          {0, time.Minute + time.Second, false},
		"set back":            {-4 * time.Minute, time.Minute + time.Second, true},
		"set back, and later": {-4 * time.Minute, 130 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(t)
			of, ended := w.clusters[0], w.now
			of.setClock(of.skew + c.set)
			app := creel.ApplicationID{ClusterTimestamp: of.start.UnixMilli(), ID: 1}
			launchUAM(w, app)
			w.now = w.now.Add(w.cfg.Expiry + c.late) // nothing of it ends the UAM
			w.audit.noUAMs(app, ended)
			if broken := breached(w, "its UAM"); broken == c.okay {
				t.Errorf("the auditor says %q", w.audit.breaches)
			}
		})
	}
}

// A router starts a second read of the store before its first returned. The first then carries an outdated store,
// with a member's earlier epoch, and is ignored.
func TestAReadThatWasOvertakenIsNotSeen(t *testing.T) {
	w := quiet(t)
	passes(w, 30*time.Second)
	v := &w.routers[0].watcher
	before := w.store.Records(w.storeClock())
	again := before.Members[0].Member
	again.Epoch++
	if err := w.store.Register(w.storeClock(), again); err != nil {
		t.Fatal(err)
	}
	v.reads += 2
	v.answered(v.reads, w.store.Records(w.storeClock()), nil)
	v.answered(v.reads-1, before, nil)
	if got := v.view.Members[0].Epoch; got != again.Epoch {
		t.Errorf("it sees life %d, after it saw %d", got, again.Epoch)
	}
	v.reads++
	v.answered(v.reads, before, nil)
	if got := v.view.Members[0].Epoch; got != before.Members[0].Epoch {
		t.Errorf("it sees life %d, and the store has %d", got, before.Members[0].Epoch)
	}
}

// quiet is a federation without submissions.
func quiet(t *testing.T) *World {
	w, err := New(day(t, 1, 9*time.Hour, 9*time.Hour+time.Minute, 2))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func breached(w *World, what string) bool {
	return strings.Contains(strings.Join(w.audit.breaches, "\n"), what)
}
