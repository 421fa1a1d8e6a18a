// SPDX-License-Identifier: Apache-2.0

// Package logs sets up the process's log: slog on stderr, text on a terminal and JSON elsewhere unless a setting
// overrides it.
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

// Each change logs an audit line, which is thousands per second under load. Writing each line separately took a
// quarter of a submission's cost, here and in the log's reader. So a line is written at once unless another was
// written within pause. Otherwise it waits for the rest of that time, together with later lines, or until they fill
// capacity. A warning is written at once, after all buffered lines. If the process is killed, buffered lines are
// lost.
const (
	pause    = 5 * time.Millisecond
	capacity = 64 << 10
)

// lines writes simultaneous log lines with one call.
type lines struct {
	out io.Writer

	mu    sync.Mutex
	held  []byte
	last  time.Time // of the last write
	armed bool      // a timer will write the buffer
}

// Write takes one or several whole lines.
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
			_ = l.write() // there is no caller to return the error to
		})
	}
	return len(b), nil
}

// write writes and empties the buffer. The caller holds the lock.
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

// flushHandler is a slog handler over lines that flushes at warnings and errors.
type flushHandler struct {
	slog.Handler
	lines *lines
}

func (p flushHandler) Handle(ctx context.Context, r slog.Record) error {
	err := p.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		p.lines.flush()
	}
	return err
}

func (p flushHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return flushHandler{p.Handler.WithAttrs(a), p.lines}
}
func (p flushHandler) WithGroup(name string) slog.Handler {
	return flushHandler{p.Handler.WithGroup(name), p.lines}
}

// Config of the log.
type Config struct {
	Level  string // debug, info, warn or error; "" is info
	Format string // auto, text or json; "" is auto: text on a terminal
	Audit  string // creel, or hadoop for the format of the same Hadoop daemon's audit logger; "" is creel
	Role   string // rm, router, ...; "" for several in one process
}

var (
	stderr = lines{out: os.Stderr}
	silent repeats
	level  slog.LevelVar
)

// Settings reads the log's configuration.
func Settings(s *settings.Settings, role string) Config {
	return Config{
		Level: s.String("creel.log.level"), Format: s.String("creel.log.format"),
		Audit: s.String("creel.log.audit"), Role: role,
	}
}

// SetUp installs the process's default logger. Callers must call Flush before the process exits.
func SetUp(c Config) error {
	if err := SetLevel(c.Level); err != nil {
		return err
	}
	h := c.handler(&stderr, isTerminal(os.Stderr))
	slog.SetDefault(slog.New(repeatHandler{Handler: h, repeats: &silent}))
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
	return flushHandler{h, to}
}

// SetLevel changes the log level at run time.
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

// Level is the name of the lowest logged level, as in SetLevel.
func Level() string { return strings.ToLower(level.Level().String()) }

// Flush writes the buffered lines, and the warnings and errors that were held back.
func Flush() {
	silent.flush()
	stderr.flush()
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
