// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
)

// Exit codes are the same for every command, and documented for scripts.
const (
	exitOK           = 0
	exitGeneral      = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitNotPermitted = 4
	exitUnreachable  = 5
	exitConflict     = 6
	exitPartial      = 7
	exitWaitFailed   = 8
)

// exitMeanings describes the codes on the command line's page, in `creel --help` and in the man page.
var exitMeanings = []struct {
	code int
	text string
}{
	{exitOK, "done"},
	{exitGeneral, "it failed in another way"},
	{exitUsage, "the command line, a file or a setting cannot be used"},
	{exitNotFound, "there is no such application, queue, node or subcluster"},
	{exitNotPermitted, "the user may not"},
	{exitUnreachable, "the server or the state store did not answer, or is busy: try again"},
	{exitConflict, "it is not as the command expects: changed meanwhile, or still alive"},
	{exitPartial, "done in part: a subcluster is missing or refused, and is named"},
	{exitWaitFailed, "wait condition not met, or timed out"},
}

// exitText returns a line for each exit code.
func exitText(line string) string {
	var b strings.Builder
	for _, m := range exitMeanings {
		fmt.Fprintf(&b, line, m.code, m.text)
	}
	return b.String()
}

// exitError is an error with its exit code.
type exitError struct {
	code int
	err  error
}

func (c *exitError) Error() string { return c.err.Error() }
func (c *exitError) Unwrap() error { return c.err }

// errSilent ends a command whose output has already reported the error.
var errSilent = errors.New("")

func usage(err error) error { return &exitError{exitUsage, err} }

func exitCode(err error) int {
	var c *exitError
	var n net.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &c):
		return c.code
	case settings.IsProblem(err):
		return exitUsage
	case errors.Is(err, creel.ErrApplicationNotFound),
		errors.Is(err, creel.ErrAttemptNotFound),
		errors.Is(err, creel.ErrContainerNotFound),
		errors.Is(err, creel.ErrNodeNotFound),
		errors.Is(err, creel.ErrSubclusterNotFound),
		errors.Is(err, creel.ErrQueueNotFound):
		return exitNotFound
	case errors.Is(err, creel.ErrNotPermitted), errors.Is(err, creel.ErrInvalidToken):
		return exitNotPermitted
	case errors.Is(err, creel.ErrConflict), errors.Is(err, creel.ErrStale):
		return exitConflict
	case errors.Is(err, creel.ErrUnavailable),
		errors.Is(err, creel.ErrBusy),
		errors.Is(err, creel.ErrStandby),
		errors.Is(err, creel.ErrNoSubcluster),
		errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &n) && !ofSystem(n):
		return exitUnreachable
	}
	return exitGeneral
}

// ofSystem reports whether an error is from the operating system, about a file and not the network. Such errors have
// the methods of a net.Error too.
func ofSystem(err net.Error) bool {
	_, is := err.(syscall.Errno)
	return is
}
