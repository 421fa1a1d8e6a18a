// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"

	"github.com/creelrm/creel"
)

// A user may rely on a reported KILLED: the end is durable, and so is the final status. Until then the application
// is reported in its previous state; only its internal state shows the kill.
func TestKilledIsDurable(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Volatile = false })
	w.node("h1", 8192, 8, "/r1")
	id := w.submit("u", "default", nil)
	w.register(id)
	tells := func(state creel.ApplicationState, final creel.FinalStatus, inner string) {
		t.Helper()
		v, ok := w.m.App(id.Application)
		if !ok || v.State != state || v.Final != final || v.Internal != inner {
			t.Fatalf("%v %v %s, want %v %v %s", v.State, v.Final, v.Internal, state, final, inner)
		}
	}
	// next takes the actions and answers the one write they must hold.
	next := func() {
		t.Helper()
		var writes []uint64
		for _, a := range w.m.Actions(nil) {
			switch a := a.(type) {
			case SaveApp:
				writes = append(writes, a.Seq)
			case SaveAttempt:
				writes = append(writes, a.Seq)
			}
		}
		if len(writes) != 1 {
			t.Fatalf("%d writes", len(writes))
		}
		w.m.Saved(w.now, writes[0])
	}
	tells(creel.AppRunning, creel.FinalUndefined, "RUNNING")
	if done, err := w.m.Kill(w.now, id.Application, "enough"); done || err != nil {
		t.Fatal(done, err)
	}
	tells(creel.AppRunning, creel.FinalUndefined, "KILLING")
	next() // the attempt's end
	tells(creel.AppRunning, creel.FinalUndefined, "FINAL_SAVING")
	if done, err := w.m.Kill(w.now, id.Application, "enough"); done || err != nil {
		t.Fatal(done, err)
	}
	next() // the application's
	tells(creel.AppKilled, creel.FinalKilled, "KILLED")
	if done, err := w.m.Kill(w.now, id.Application, "enough"); !done || err != nil {
		t.Fatal(done, err)
	}
}
