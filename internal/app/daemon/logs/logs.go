// SPDX-License-Identifier: Apache-2.0

// Package logs sets up the process's log: slog on stderr, text on a terminal
// and JSON elsewhere unless a setting says otherwise.
package logs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/settings"
)

// Each change leaves a line of audit, thousands a second under load: written
// one by one they were a quarter of what a submission cost, here and in whoever
// reads the log. So a line goes at once unless one went within pause; then it
// waits for the rest of that time, with all that come meanwhile, or until they
// fill capacity. A warning goes at once with everything before it. A process
// that is killed loses what waited.
const (
	pause    = 5 * time.Millisecond
	capacity = 64 << 10
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
	left := pause - time.Since(l.last)
	switch {
	case left <= 0 && !l.armed, len(l.held) >= capacity:
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

// Config of the log.
type Config struct {
	Level  string // debug, info, warn or error; "" is info
	Format string // auto, text or json; "" is auto: text on a terminal
	Audit  string // creel or hadoop: in the form of Hadoop's logger of that daemon; "" is creel
	Role   string // rm, router, ...; "" for several in one process
}

var (
	stderr = lines{out: os.Stderr}
	level  slog.LevelVar
)

// Settings reads the log's configuration.
func Settings(s *settings.Settings, role string) Config {
	return Config{
		Level: s.String("creel.log.level"), Format: s.String("creel.log.format"),
		Audit: s.String("creel.log.audit"), Role: role,
	}
}

// SetUp makes the process's default logger. Whoever ends the process calls Flush
// before.
func SetUp(c Config) error {
	if err := SetLevel(c.Level); err != nil {
		return err
	}
	slog.SetDefault(slog.New(c.handler(&stderr, isTerminal(os.Stderr))))
	return nil
}

func (c Config) handler(to *lines, terminal bool) slog.Handler {
	options := &slog.HandlerOptions{Level: &level}
	var h slog.Handler = slog.NewJSONHandler(to, options)
	if c.Format == "text" || c.Format != "json" && terminal {
		h = slog.NewTextHandler(to, options)
	}
	if c.Audit == "hadoop" {
		logger := map[string]string{"rm": "resourcemanager.RMAuditLogger", "router": "router.RouterAuditLogger"}[c.Role]
		h = audit.NewHadoop(h, to, cmp.Or(logger, "creel.AuditLogger"))
	}
	return prompt{h, to}
}

// SetLevel changes what is logged from now on.
func SetLevel(name string) error {
	var l slog.Level // info
	if name != "" {
		if err := l.UnmarshalText([]byte(name)); err != nil {
			return fmt.Errorf("creel.log.level: %q is none of debug, info, warn and error", name)
		}
	}
	level.Set(l)
	return nil
}

// Level is the name of the lowest level that is logged, as SetLevel takes it.
func Level() string { return strings.ToLower(level.Level().String()) }

// Flush writes the lines that wait.
func Flush() { stderr.flush() }

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
