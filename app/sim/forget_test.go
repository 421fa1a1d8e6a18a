// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// A day of any length needs the memory of its unfinished work: the world keeps no containers, AMs and messages of
// applications whose end it has checked.
func TestMemoryIsThatOfUnfinishedWork(t *testing.T) {
	c := day(t, 1, 9*time.Hour, 9*time.Hour+20*time.Minute, 5)
	c.Expiry = time.Minute // so that applications are forgotten soon
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Run(); !r.Good() {
		t.Fatalf("%d of %d ended: %v", r.Finished+r.Failed, r.Submitted, r.Broken)
	}
	a := &w.audit
	var last time.Time // end of the last application, and of the rounds of forget
	for _, app := range a.apps {
		if app.ended.After(last) {
			last = app.ended
		}
	}
	old := last.Add(-3*a.silence() - 2*forgetEvery)
	forgotten, containers := 0, 0
	for id, app := range a.apps {
		if app.forgotten {
			forgotten++
			if m := app.am; len(app.containers)+len(app.latest)+len(m.held)+len(m.nmTokens)+len(m.told) > 0 || m.play != nil {
				t.Errorf("%s is forgotten, and its containers or its AM are not", id)
			}
		} else if app.ended.Before(old) {
			t.Errorf("%s ended %v before the last application, and is not forgotten", id, last.Sub(app.ended))
		}
		containers += len(app.containers)
	}
	if all := len(a.apps); forgotten < all/2 || int64(containers) > a.granted/2 {
		t.Errorf("%d of %d applications are forgotten; %d containers are known of %d", forgotten, all, containers, a.granted)
	}
	if hosts := len(w.hosts); len(w.lanes) > 4*hosts {
		t.Errorf("arrivals of %d connections are known among %d hosts", len(w.lanes), hosts)
	}
}

// Nothing may happen to a container whose application was forgotten, unless the store lost writes.
func TestUseOfForgottenContainer(t *testing.T) {
	for name, lost := range map[string]bool{"the store is whole": false, "the store lost writes": true} {
		t.Run(name, func(t *testing.T) {
			w := quiet(t)
			w.lost = lost
			app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
			id := creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, epochStep, 2)
			w.audit.apps[app] = &appRecord{}
			w.audit.processStarted(id)
			w.audit.processEnded(id)
			w.audit.forgetLater(app, w.now)
			w.audit.forget()
			if !w.audit.apps[app].forgotten || w.audit.happened(id, hasStarted) {
				t.Fatal("the application is not forgotten")
			}
			w.audit.processStarted(id)
			if broken := breached(w, "ended long ago"); broken == lost {
				t.Errorf("the auditor says %q", w.audit.breaches)
			}
		})
	}
}

// An application is not forgotten while one of its containers or its AM runs.
func TestRunningApplicationIsNotForgotten(t *testing.T) {
	w := quiet(t)
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	id := creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, epochStep, 2)
	r := &appRecord{ams: 1}
	w.audit.apps[app] = r
	w.audit.processStarted(id)
	w.audit.forgetLater(app, w.now)
	for _, end := range []func(){func() {}, func() { w.audit.processEnded(id) }, func() { r.ams = 0 }} {
		if r.forgotten {
			t.Fatal("the application is forgotten, and runs")
		}
		end()
		w.now = w.now.Add(forgetEvery)
		w.audit.forget()
	}
	if !r.forgotten {
		t.Error("the application has ended, and is not forgotten")
	}
}
