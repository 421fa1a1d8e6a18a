// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// A proxy has given a UAM back, or it was killed, and its AM needs the member again.
func TestEndedUAMRestartsByLastAttempt(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Volatile = false })
	w.node("n", 8192, 8, "/r")
	first := w.unmanaged("ann", "default")
	if got := w.asks(first, ask(1, "*", 1024, 1, 2)); len(got.Granted) != 2 {
		t.Fatalf("asked for 2 and got %d", len(got.Granted))
	}
	submit := func(after int32, change func(*Submission)) error {
		s := &Submission{ID: first.Application, User: "ann", Queue: "default", Unmanaged: true, After: after}
		if change != nil {
			change(s)
		}
		err := w.m.Submit(w.now, s)
		w.pump()
		return err
	}
	is := func(want creel.ApplicationState, attempt int32, when string) {
		t.Helper()
		v, ok := w.m.App(first.Application)
		if !ok || v.State != want || v.Attempt.Attempt != attempt {
			t.Fatalf("%s it is %v in attempt %d, want %v in %d", when, v.State, v.Attempt.Attempt, want, attempt)
		}
	}
	if err := submit(1, nil); err != nil {
		t.Fatal(err)
	}
	is(creel.AppRunning, 1, "submitted again while it lives,")

	if _, err := w.m.Kill(w.now, first.Application, "by an operator"); err != nil {
		t.Fatal(err)
	}
	w.pump()
	for name, try := range map[string]func() error{
		"a repeat of the first submission": func() error { return submit(0, nil) },
		"one that names another attempt":   func() error { return submit(2, nil) },
		"one with an AM to start":          func() error { return submit(1, func(s *Submission) { s.Unmanaged = false }) },
		"one that a router forwarded":      func() error { return submit(1, func(s *Submission) { s.Claim = 3 }) },
	} {
		if err := try(); err != nil {
			t.Error(err)
		}
		is(creel.AppKilled, 1, "after "+name)
	}
	if err := submit(1, func(s *Submission) { s.User = "eve" }); err == nil {
		t.Error("another user began it")
	}
	is(creel.AppKilled, 1, "begun by another")

	if err := submit(1, nil); err != nil {
		t.Fatal(err)
	}
	is(creel.AppAccepted, 2, "begun again,")
	second := creel.AttemptID{Application: first.Application, Attempt: 2}
	if r := w.register(second); len(r.Previous) != 0 {
		t.Errorf("it inherits %v of what was killed", r.Previous)
	}
	got := w.asks(second, ask(1, "*", 1024, 1, 3))
	if len(got.Granted) != 3 || len(got.Completed) != 0 {
		t.Fatalf("the second asked for 3: %d granted, %d completed", len(got.Granted), len(got.Completed))
	}
	for _, c := range got.Granted {
		if c.ID.Attempt != second {
			t.Errorf("container %v has an id of the first", c.ID)
		}
	}
	w.audit()
	if _, err := w.m.Allocate(w.now, first, &AllocateRequest{ResponseID: 1}); err == nil {
		t.Error("the ended attempt is still served")
	}
	listed := 0
	w.m.Apps(func(*AppView) bool { listed++; return true })
	if listed != 1 {
		t.Errorf("it is listed %d times", listed)
	}

	// A restart recovers it unchanged; then it ends, and late calls begin nothing.
	var kept AppRecord
	for _, a := range w.got {
		switch a := a.(type) {
		case SaveApp:
			kept = a.Record
		case SaveAttempt:
			i := slices.IndexFunc(kept.Attempts, func(r AttemptRecord) bool { return r.ID == a.Record.ID })
			if i < 0 {
				kept.Attempts = append(kept.Attempts, a.Record)
			} else {
				kept.Attempts[i] = a.Record
			}
		}
	}
	next := newWorld(t, func(c *Config) { c.Epoch = 1 })
	if err := next.m.Recover(next.now, &Recover{Apps: []AppRecord{kept}}); err != nil {
		t.Fatal(err)
	}
	next.pump()
	w = next
	is(creel.AppAccepted, 2, "after a restart")
	w.register(second)
	w.now = w.now.Add(time.Second)
	if _, err := w.m.FinishAM(w.now, &FinishAM{Attempt: second, Status: creel.FinalSucceeded}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	is(creel.AppFinished, 2, "finished,")
	if err := submit(1, nil); err != nil {
		t.Fatal(err)
	}
	is(creel.AppFinished, 2, "by the late submission after the first attempt")
	w.audit()
}
