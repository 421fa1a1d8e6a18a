// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"time"
)

// progress shows how far long work is. On a terminal it rewrites one line. Elsewhere each changed text is a line, at
// most one in `every`.
type progress struct {
	out      io.Writer
	terminal bool
	every    time.Duration
	last     string
	printed  time.Time
	open     bool // the terminal's cursor stands behind the rewritten line
}

func newProgress(out io.Writer, every time.Duration) *progress {
	return &progress{out: out, terminal: terminal(out), every: every, printed: time.Now()}
}

// redrawEvery bounds how often a terminal's line is rewritten by work without pauses of its own.
const redrawEvery = 200 * time.Millisecond

// progressEvery is the time between two lines of work that changes all the time, without a terminal.
const progressEvery = 10 * time.Second

// A line wider than the terminal would wrap, and only its last row would be rewritten. So wrapping is off meanwhile.
const (
	rewriteLine = "\r\x1b[K"
	wrapOff     = "\x1b[?7l"
	wrapOn      = "\x1b[?7h"
)

// show replaces the line. An error of the output ends no work. A nil progress shows nothing.
func (p *progress) show(text string) {
	now := time.Now()
	switch {
	case p == nil, text == p.last:
	case p.terminal && (p.every == 0 || now.Sub(p.printed) >= redrawEvery):
		p.last, p.printed, p.open = text, now, true
		_, _ = io.WriteString(p.out, rewriteLine+wrapOff+strings.ReplaceAll(text, "\n", "; ")+wrapOn)
	case !p.terminal && now.Sub(p.printed) >= p.every:
		p.last, p.printed = text, now
		_, _ = io.WriteString(p.out, text+"\n")
	}
}

// line prints a line that stays.
func (p *progress) line(text string) {
	p.clear()
	_, _ = io.WriteString(p.out, text+"\n")
}

// clear removes the line that is rewritten.
func (p *progress) clear() {
	if p != nil && p.open {
		p.open, p.last = false, ""
		_, _ = io.WriteString(p.out, rewriteLine)
	}
}
