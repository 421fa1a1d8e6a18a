// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// screen is a demo's output. On a terminal, the last line is a progress bar below the other lines. Otherwise a
// progress line is printed every ten seconds.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	bar      string        // content of the terminal's last line
	told     time.Duration // time of the last progress line without a terminal
}

const (
	tellEvery = 10 * time.Second // without a terminal
	barWidth  = 24
)

// Write prints lines, above the bar.
func (s *screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar == "" {
		return s.out.Write(lines)
	}
	_, err := s.out.Write(bytes.Join([][]byte{[]byte(clearLine), lines, []byte(s.bar)}, nil))
	return len(lines), err
}

const clearLine = "\r\x1b[K"

// state is the progress of a demo.
type state struct {
	after                   time.Duration // since the start
	last                    time.Duration // due time of the last job
	jobs, accepted          int
	running, ended          int64
	containers, lastSeconds int64 // granted: total, and in the last second
}

// show prints the progress if it is due.
func (s *screen) show(p state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	figures := fmt.Sprintf("%5d of %d submitted  %5d running  %5d ended  %8d containers  %6d/s",
		p.accepted, p.jobs, p.running, p.ended, p.containers, p.lastSeconds)
	switch {
	case s.terminal:
		s.bar = clearLine + p.bar() + figures + "  " + p.left()
		_, _ = io.WriteString(s.out, s.bar)
	case s.told == 0 || p.after-s.told >= tellEvery-tellEvery/20:
		s.told = p.after
		fmt.Fprintf(s.out, "%4.0fs %s  %s\n", p.after.Seconds(), figures, p.left())
	}
}

// done removes the bar.
func (s *screen) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != "" {
		s.bar = ""
		_, _ = io.WriteString(s.out, clearLine)
	}
	s.told = 0
}

// bar draws the share of jobs that have ended.
func (p *state) bar() string {
	n := barWidth * int(p.ended) / max(1, p.jobs)
	return "[" + strings.Repeat("#", min(n, barWidth)) + strings.Repeat(".", barWidth-min(n, barWidth)) + "] "
}

// left describes the remaining work: submissions take as long as the compressed day, and applications still running
// then take their own time.
func (p *state) left() string {
	if wait := (p.last - p.after).Round(time.Second); wait > 0 {
		return fmt.Sprintf("submits for %v more", wait)
	}
	return fmt.Sprintf("%d to end", int64(p.jobs)-p.ended)
}
