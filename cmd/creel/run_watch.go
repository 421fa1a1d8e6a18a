// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/shell"
)

// runWatch follows one application of `creel run` to its end.
type runWatch struct {
	f     *runFlags
	id    creel.ApplicationID
	lines *progress // output for changes
	out   io.Writer // output for the end
	began time.Time
	last  string    // the last line
	state string    // last state printed
	waits string    // last reason printed
	shown time.Time // time of the last query for reasons

	killed bool
}

const (
	runPoll    = 300 * time.Millisecond
	runPatient = time.Second // shorter waits are not explained
	// runLost is the time without a response after which the watch stops. The application does not need the server.
	runLost = time.Minute
)

func (w *runWatch) say(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	if text == w.last || w.f.quiet {
		return
	}
	w.last = text
	w.lines.line(text)
}

// show reports a change of the application: its line is rewritten on a terminal, with its age.
func (w *runWatch) show(state, waits string) {
	switch {
	case w.f.quiet:
	case w.lines.terminal:
		line := fmt.Sprintf("%s %s, %.0f s", w.id, state, time.Since(w.began).Seconds())
		if waits != "" {
			line += ": " + waits
		}
		w.lines.show(line)
	default:
		if state != w.state {
			w.say("%s %s", w.id, state)
		}
		if waits != w.waits && waits != "" {
			w.say("%s", waits)
		}
	}
	w.state, w.waits = state, waits
}

// watch returns when the application has ended. When ctx ends it kills the application. stop restores the signal's
// default effect, so that a second signal ends the program.
func (w *runWatch) watch(ctx, outer context.Context, stop func()) error {
	w.began = time.Now()
	answered := time.Now()
	var due <-chan time.Time
	if w.f.timeout > 0 {
		due = time.After(w.f.timeout)
	}
	signalled := ctx.Done()
	defer w.lines.clear()
	for {
		a, err := w.f.app(outer, w.id)
		switch {
		case err == nil:
			answered = time.Now()
		case exitCode(err) != exitUnreachable:
			return err
		case time.Since(answered) > runLost:
			return &exitError{exitUnreachable, fmt.Errorf(
				"no report of %s for %v: %w; it continues, see creel app status", w.id, runLost, err)}
		default:
			w.say("the server does not answer, which does not stop the application: %v", err)
		}
		if err == nil {
			state, err := creel.ParseApplicationState(a.State)
			if err != nil {
				return err
			}
			if state.Ended() && a.FinalStatus != "UNDEFINED" {
				return w.ended(a)
			}
			w.tell(outer, a, state)
		}
		select {
		case <-signalled:
			signalled = nil
			stop()
			w.kill(outer, "it was interrupted")
		case <-due:
			w.kill(outer, fmt.Sprintf("it had not ended after %v", w.f.timeout))
		case <-outer.Done():
			return outer.Err()
		case <-time.After(runPoll):
		}
	}
}

// tell prints changes: the state, the number of completed containers, the wait reason.
func (w *runWatch) tell(ctx context.Context, a appDoc, state creel.ApplicationState) {
	done := int(math.Round(a.Progress / 100 * float64(w.f.spec.Containers)))
	if w.killed {
		return
	}
	text := fmt.Sprintf("%s, %d of %d containers ended", a.State, done, w.f.spec.Containers)
	w.show(text, w.waits)
	if time.Since(w.began) < runPatient || time.Since(w.shown) < runPatient {
		return
	}
	w.shown = time.Now()
	why, err := w.f.why(ctx, w.id)
	if err != nil {
		return // the report already names the absent server
	}
	w.show(text, why.waits())
}

func (w *runWatch) kill(ctx context.Context, why string) {
	order := map[string]string{"state": "KILLED", "diagnostics": "creel run: " + why}
	w.killed = true
	w.say("%s is killed: %s", w.id, why)
	if _, err := w.f.call(ctx, http.MethodPut, appPath(w.id)+"/state", nil, order, nil); err != nil {
		w.say("the kill was not taken: %v; kill it with creel app kill %s", err, w.id)
	}
}

// runResult is the document of `creel run -o json`.
type runResult struct {
	ID          string  `json:"id"`
	State       string  `json:"state"`
	FinalStatus string  `json:"finalStatus"`
	Diagnostics string  `json:"diagnostics"`
	Seconds     float64 `json:"seconds"`
}

func (w *runWatch) ended(a appDoc) error {
	w.lines.clear()
	r := runResult{a.ID, a.State, a.FinalStatus, strings.TrimSpace(a.Diagnostics), time.Since(w.began).Seconds()}
	err := printOne(w.out, w.f.printer, r, r.ID, func(out io.Writer) error {
		end := r.State
		if end == creel.AppFinished.String() {
			end = r.FinalStatus // the AM's final status
		}
		_, err := fmt.Fprintf(out, "%s %s after %.1f s: %s\n", r.ID, end, r.Seconds, r.Diagnostics)
		return err
	})
	if err != nil || r.FinalStatus == "SUCCEEDED" {
		return err
	}
	if w.f.printer.format == "name" {
		return &exitError{exitWaitFailed, fmt.Errorf("%s ended %s: %s", r.ID, r.FinalStatus, r.Diagnostics)}
	}
	return &exitError{exitWaitFailed, errSilent}
}

// runAMCommand runs the AM of `creel run` on a real node.
func runAMCommand() *cobra.Command {
	var f confFlags
	c := &cobra.Command{
		Use: "run-am", Short: "the AM of creel run, started by a NodeManager", Hidden: true, Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			spec, am, err := shell.FromEnvironment(os.Getenv, os.ReadFile)
			if err != nil {
				return usage(err)
			}
			if am.Scheduler == "" {
				s, err := f.load()
				if err != nil {
					return err
				}
				am.Scheduler = s.Address("yarn.resourcemanager.scheduler.address")
			}
			fmt.Fprintf(c.ErrOrStderr(), "the AM of %s asks %s for %d containers\n",
				am.Attempt, am.Scheduler, spec.Containers)
			am.Client = shell.NewClient()
			defer am.Client.Close()
			return spec.Run(c.Context(), am)
		},
	}
	f.register(c)
	return c
}
