// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// An application whose end is not durable yet neither waits nor receives grants, whatever caused its end: resources
// that become free meanwhile go to others.
func TestLeavingApplicationIsUnordered(t *testing.T) {
	const silence = 10 * time.Second
	for name, leave := range map[string]func(w *world, id creel.AttemptID){
		"its AM was silent": func(w *world, id creel.AttemptID) {
			w.now = w.now.Add(silence + time.Second)
			w.m.Tick(w.now)
		},
		"it was killed": func(w *world, id creel.AttemptID) {
			if _, err := w.m.Kill(w.now, id.Application, "enough"); err != nil {
				w.t.Fatal(err)
			}
		},
		"its attempt was failed": func(w *world, id creel.AttemptID) {
			if err := w.m.FailAttempt(w.now, id); err != nil {
				w.t.Fatal(err)
			}
		},
		"it unregistered": func(w *world, id creel.AttemptID) {
			if _, err := w.m.FinishAM(w.now, &FinishAM{Attempt: id, Status: creel.FinalSucceeded}); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Volatile, c.AMExpiry = false, silence })
			id := w.unmanaged("u", "default")
			if got := w.asks(id, ask(1, "*", 1024, 1, 3)).Granted; len(got) > 0 {
				t.Fatalf("granted %v without a node", got)
			}
			leave(w, id) // and nothing is durable
			w.audit()
			if w.m.sched.Waiting() != 0 {
				t.Error("it waits for containers")
			}
			w.node("n1", 8192, 8, "")
			w.audit()
			if v, _ := w.m.App(id.Application); v.Containers != 0 {
				t.Errorf("it was given %d containers", v.Containers)
			}
		})
	}
}
