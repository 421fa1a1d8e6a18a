// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
)

// follower prints what is added to the logs of an application's containers.
type follower struct {
	f      *clientFlags
	out    io.Writer
	file   string
	sent   map[string]int    // bytes printed, by container and file
	last   string            // container and file of the last output
	failed map[string]string // last error by container
}

// followEvery is the time between two reads.
const followEvery = time.Second

// follow returns when the application has ended and its last output is printed.
func (l *follower) follow(c *cobra.Command, id creel.ApplicationID, container string) error {
	for {
		a, err := l.f.app(c.Context(), id) // before the logs: what an ended application wrote is in them
		if err != nil && exitCode(err) != exitUnreachable {
			return err
		}
		over := false
		if err == nil {
			state, err := creel.ParseApplicationState(a.State)
			if err != nil {
				return err
			}
			over = state.Ended()
		}
		list, err := l.f.logged(c.Context(), id, container)
		passing := exitCode(err) == exitNotFound || exitCode(err) == exitUnreachable // until a container starts
		if err != nil && (over && len(l.sent) == 0 || !passing) {
			return err
		}
		for _, at := range list {
			l.read(c, at)
		}
		switch {
		case over && len(l.sent) == 0:
			return &exitError{exitNotFound, errSilent}
		case over:
			return nil
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

// read prints the additions of one container, or its error if it is another one than before. A node forgets the logs
// of an ended container after a time, which is no error once they were read.
func (l *follower) read(c *cobra.Command, at logAt) {
	err := l.additions(c.Context(), at)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.failed[at.ID] && text != "" && exitCode(err) != exitNotFound {
		fmt.Fprintf(c.ErrOrStderr(), "creel: the logs of %s: %s\n", at.ID, text)
	}
	l.failed[at.ID] = text
}

func (l *follower) additions(ctx context.Context, at logAt) error {
	return l.f.eachLog(ctx, at, l.file, func(name string, b []byte) {
		key := at.ID + " " + name
		from := l.sent[key]
		if from > len(b) { // the file was rotated
			from = 0
		}
		l.sent[key] = len(b)
		if from == len(b) {
			return
		}
		if key != l.last {
			fmt.Fprintf(l.out, "==> %s on %s <==\n", key, at.Web)
			l.last = key
		}
		_, _ = l.out.Write(b[from:]) // an error of the output ends no reading
	})
}
