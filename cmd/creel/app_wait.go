// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
)

// waitCondition is a condition of `creel app wait` on one application.
type waitCondition struct {
	text string
	met  func(state creel.ApplicationState, final string) bool
}

// waitWords are the conditions besides state=STATE.
var waitWords = map[string]func(state creel.ApplicationState, final string) bool{
	"running":   func(s creel.ApplicationState, _ string) bool { return reached(s, creel.AppRunning) },
	"ended":     func(s creel.ApplicationState, _ string) bool { return s.Ended() },
	"finished":  func(s creel.ApplicationState, _ string) bool { return s == creel.AppFinished },
	"killed":    func(s creel.ApplicationState, _ string) bool { return s == creel.AppKilled },
	"succeeded": func(s creel.ApplicationState, final string) bool { return s.Ended() && final == "SUCCEEDED" },
	"failed":    func(s creel.ApplicationState, final string) bool { return s.Ended() && final == "FAILED" },
}

// reached reports whether an application is in a state or has passed it on the way to a regular end.
func reached(now, wanted creel.ApplicationState) bool {
	return now == wanted || !wanted.Ended() && (!now.Ended() && now > wanted || now == creel.AppFinished)
}

// parseCondition reads a condition: a word, or state=STATE.
func parseCondition(text string) (waitCondition, error) {
	if met, ok := waitWords[strings.ToLower(text)]; ok {
		return waitCondition{text: strings.ToLower(text), met: met}, nil
	}
	name, ok := strings.CutPrefix(text, "state=")
	wanted, err := creel.ParseApplicationState(name)
	if !ok || err != nil {
		return waitCondition{}, usage(fmt.Errorf("--for %q: expected running, finished, succeeded, failed, killed, "+
			"ended, or state=STATE with a state of YARN", text))
	}
	return waitCondition{
		text: wanted.String(),
		met:  func(now creel.ApplicationState, _ string) bool { return reached(now, wanted) },
	}, nil
}

// appWaiter waits for applications, each until it meets one of the conditions.
type appWaiter struct {
	f          *clientFlags
	conditions []waitCondition
	any        bool // one application is enough
	open       []creel.ApplicationID
	known      string // about the first open one
	code       int    // at the timeout
	failed     error  // the last end that meets no condition
}

func appWait() *cobra.Command {
	var f clientFlags
	var conditions []string
	var timeout time.Duration
	var one bool
	c := &cobra.Command{
		Use:   "wait ID...",
		Short: "wait until applications reach a state",
		Long: `Waits until every application meets one of the conditions; with --any, until one
application does. It fails with exit code 8 as soon as an application has ended in
another way, with --any when all have, and when the time is over.

A condition is running, finished, succeeded, failed, killed, ended, or state=STATE
with a state of YARN. An application that has finished was running, too.`,
		Example: `  creel app wait application_1700000000000_0001 --for running --timeout 1m
  creel app wait application_1700000000000_0001 application_1700000000000_0002 --for succeeded
  creel app wait application_1700000000000_0001 application_1700000000000_0002 --any --for failed,killed`,
		Args: between(1, math.MaxInt, "at least one application id"), ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		w := appWaiter{f: &f, any: one, known: "no answer came", code: exitUnreachable}
		for _, text := range args {
			id, err := appArgument(text)
			if err != nil {
				return err
			}
			w.open = append(w.open, id)
		}
		for _, text := range conditions {
			condition, err := parseCondition(text)
			if err != nil {
				return err
			}
			w.conditions = append(w.conditions, condition)
		}
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		// The first round ignores the timeout, so that its error can name the state of an application.
		for asked := c.Context(); ; asked = ctx {
			over, err := w.round(asked, c)
			if over || err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return w.late(timeout)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	f.register(c)
	c.Flags().StringSliceVar(&conditions, "for", []string{"state=FINISHED"},
		"`CONDITION`: running, finished, succeeded, failed, killed, ended, or state=STATE; may be repeated, one is enough")
	c.Flags().BoolVar(&one, "any", false, "wait for one of the applications, not for all")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Minute,
		"give up after this long; each application is asked once at least")
	return c
}

// round asks for each open application once. It returns true when the wait is over.
func (w *appWaiter) round(ctx context.Context, c *cobra.Command) (over bool, err error) {
	var open []creel.ApplicationID
	for _, id := range w.open {
		a, err := w.f.app(ctx, id)
		switch {
		case ctx.Err() != nil:
			return false, nil
		case err != nil && exitCode(err) != exitUnreachable:
			return false, err
		case err != nil:
			w.note(len(open) == 0, "the last answer was: "+err.Error(), exitUnreachable)
			open = append(open, id)
			continue
		}
		state, err := creel.ParseApplicationState(a.State)
		switch {
		case err != nil:
			return false, err
		case w.met(state, a.FinalStatus):
			fmt.Fprintf(c.OutOrStdout(), "%s %s %s\n", id, a.State, a.FinalStatus)
			if w.any {
				return true, nil
			}
		case state.Ended():
			w.failed = &exitError{exitWaitFailed, fmt.Errorf("%s ended %s (%s), not %s: %s", id, a.State, a.FinalStatus,
				w.wanted(), strings.TrimSpace(a.Diagnostics))}
			if !w.any {
				return false, w.failed
			}
		default:
			w.note(len(open) == 0, "it was "+a.State+" when last seen", exitWaitFailed)
			open = append(open, id)
		}
	}
	w.open = open
	return len(open) == 0, w.failedIf(len(open) == 0)
}

// failedIf returns the end that met no condition, once nothing is left to wait for.
func (w *appWaiter) failedIf(over bool) error {
	if over {
		return w.failed
	}
	return nil
}

func (w *appWaiter) note(first bool, known string, code int) {
	if first {
		w.known, w.code = known, code
	}
}

func (w *appWaiter) met(state creel.ApplicationState, final string) bool {
	for _, c := range w.conditions {
		if c.met(state, final) {
			return true
		}
	}
	return false
}

func (w *appWaiter) wanted() string {
	texts := make([]string, len(w.conditions))
	for i, c := range w.conditions {
		texts[i] = c.text
	}
	return strings.Join(texts, " or ")
}

// late is the error at the timeout, about the first application that meets no condition.
func (w *appWaiter) late(timeout time.Duration) error {
	others := ""
	if n := len(w.open) - 1; n > 0 {
		others = fmt.Sprintf(" (and %d more)", n)
	}
	return &exitError{w.code, fmt.Errorf("%s%s is not %s after %v: %s; `creel app why %s` shows the wait reason",
		w.open[0], others, w.wanted(), timeout, w.known, w.open[0])}
}
