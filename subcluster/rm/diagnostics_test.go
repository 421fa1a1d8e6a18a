// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"strings"
	"testing"

	"github.com/creelrm/creel"
)

// The example of Hadoop's BoundedAppender, whose messages end their lines themselves.
func TestOfManyDiagnosticsTheLastAreKept(t *testing.T) {
	var d diagnostics
	for _, s := range []string{
		"message1 this is a very long message but fitting into limit",
		"", // empty
		"message2 this is shorter than the previous one",
		"message3 this is even shorter message, maybe.",
		"message4 the shortest one, yet the greatest :)",
	} {
		d.add(s, 80)
	}
	want := "Diagnostic messages truncated, showing last 80 chars out of 199:\n" +
		"...s is even shorter message, maybe.\nmessage4 the shortest one, yet the greatest :)"
	if got := d.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Characters are counted, not bytes, and none is cut in two.
	d = diagnostics{}
	d.add("äöüß", 4)
	if got := d.String(); got != "äöüß" {
		t.Errorf("%q at its limit", got)
	}
	d.add("€", 4)
	if got := d.String(); got != "Diagnostic messages truncated, showing last 4 chars out of 6:\n...üß\n€" {
		t.Errorf("%q", got)
	}
}

// yarn.app.attempt.diagnostics.limit.kc applies to an AM's final message and to failure messages, in the reports of
// the attempt and its application and in saved records.
func TestDiagnosticsOfAnAttemptAreBounded(t *testing.T) {
	const header = "Diagnostic messages truncated, showing last 1024 chars out of 5003:\n..."
	long := strings.Repeat("a", 5000) + "end"
	w := newWorld(t, func(c *Config) { c.DiagnosticsLimit = 1024 })
	w.node("n1", 8192, 8, "")
	id := w.unmanaged("u", "default")
	if _, err := w.m.FinishAM(
		w.now, &FinishAM{Attempt: id, Status: creel.FinalSucceeded, Diagnostics: long},
	); err != nil {
		t.Fatal(err)
	}
	want := header + long[len(long)-1024:]
	app, _ := w.m.App(id.Application)
	if got := w.m.Attempts(id.Application)[0].Diagnostics; got != want || app.Diagnostics != want {
		t.Errorf("the attempt says %.120q, the application %.120q", got, app.Diagnostics)
	}
	if got := w.m.apps.record(w.m.apps.byID[id.Application]).Diagnostics; got != want {
		t.Errorf("kept of the application: %.120q", got)
	}
	if got := w.m.apps.attempt(id).record().Diagnostics; got != want {
		t.Errorf("kept of the attempt: %.120q", got)
	}

	failed := w.submit("u", "default", func(s *Submission) { s.MaxAttempts = 1 })
	w.m.AMLaunchFailed(w.now, failed, long)
	w.pump()
	app, _ = w.m.App(failed.Application)
	got := w.m.Attempts(failed.Application)[0].Diagnostics
	if !strings.HasPrefix(got, "Diagnostic messages truncated, showing last 1024 chars out of ") ||
		!strings.HasSuffix(got, "aend") || len(got) > 1200 {
		t.Errorf("an attempt that failed says %.120q", got)
	}
	if app.State != creel.AppFailed || !strings.Contains(app.Diagnostics, got) || len(app.Diagnostics) > 1400 {
		t.Errorf("its application, %v, says %.120q", app.State, app.Diagnostics)
	}
}
