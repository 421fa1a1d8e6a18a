// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Each change leaves a line of audit, thousands a second under load: written
// one by one they were a quarter of what a submission cost, here and in whoever
// reads the log. So a line goes at once unless one went within linesPause; then it
// waits for the rest of that time, with all that come meanwhile, or until they
// fill linesRoom. A warning goes at once with everything before it. A process
// that is killed loses what waited.
const (
	linesPause = 5 * time.Millisecond
	linesRoom  = 64 << 10
)

// lines writes log lines that come together with one call.
type lines struct {
	out io.Writer

	mu    sync.Mutex
	held  []byte
	last  time.Time // of writing
	armed bool      // a timer will write what is held
}

// Write takes one line or several, whole.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, b...)
	left := linesPause - time.Since(l.last)
	switch {
	case left <= 0 && !l.armed, len(l.held) >= linesRoom:
		return len(b), l.write()
	case !l.armed:
		l.armed = true
		time.AfterFunc(left, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.armed = false
			_ = l.write() // nobody to tell
		})
	}
	return len(b), nil
}

// write empties what is held. The lock is held.
func (l *lines) write() error {
	if len(l.held) == 0 {
		return nil
	}
	_, err := l.out.Write(l.held)
	l.held, l.last = l.held[:0], time.Now()
	return err
}

func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.write()
}

// prompt is a handler over lines whose warnings and errors do not wait.
type prompt struct {
	slog.Handler
	lines *lines
}

func (p prompt) Handle(ctx context.Context, r slog.Record) error {
	err := p.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		p.lines.flush()
	}
	return err
}

func (p prompt) WithAttrs(a []slog.Attr) slog.Handler { return prompt{p.Handler.WithAttrs(a), p.lines} }
func (p prompt) WithGroup(name string) slog.Handler {
	return prompt{p.Handler.WithGroup(name), p.lines}
}

var (
	logs     = lines{out: os.Stderr}
	logsOnce sync.Once
)

// setUpLogs writes text on a terminal and JSON elsewhere, to stderr. Who ends
// the process flushes logs before.
func setUpLogs() {
	logsOnce.Do(func() {
		var h slog.Handler = slog.NewJSONHandler(&logs, nil)
		if isTerminal(os.Stderr) {
			h = slog.NewTextHandler(&logs, nil)
		}
		slog.SetDefault(slog.New(prompt{h, &logs}))
	})
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
