// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/audit"
)

// A warning or error is written at once. Others of its kind are counted for the next Silence and replaced by the
// last of them, with their number. A store that is away for an hour is 360 lines then, not one for each call.
const Silence = 10 * time.Second

// kindsMost bounds the memory of repeats. Beyond it every line is written.
const kindsMost = 1024

// passing are the attributes that differ between lines of one kind. An attribute that is not text differs as well.
var passing = map[string]bool{
	"error": true, "application": true, "attempt": true, "container": true, "user": true, "from": true, "peer": true,
}

// repeats are the kinds of lines that are silent now.
type repeats struct {
	mu    sync.Mutex
	kinds map[string]*repeat
}

// repeat is one silent kind.
type repeat struct {
	count int // lines that were not written
	last  slog.Record
	to    slog.Handler // of the last
	timer *time.Timer
}

// repeatHandler is a slog handler that writes warnings and errors of one kind once per Silence, and each audit line.
type repeatHandler struct {
	slog.Handler
	repeats *repeats
	of      string // the attributes that the logger has
}

func (h repeatHandler) Handle(ctx context.Context, r slog.Record) error {
	// An audit line is a record of one call, and each is needed.
	if r.Level >= slog.LevelWarn && r.Message != audit.Message && h.repeats.hold(h.kind(r), r, h.Handler) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h repeatHandler) WithAttrs(a []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.of)
	for _, attr := range a {
		name(&b, attr)
	}
	return repeatHandler{h.Handler.WithAttrs(a), h.repeats, b.String()}
}

func (h repeatHandler) WithGroup(group string) slog.Handler {
	return repeatHandler{h.Handler.WithGroup(group), h.repeats, h.of + "\x00" + group}
}

// kind names the kind of a line: its level, message and subject.
func (h repeatHandler) kind(r slog.Record) string {
	var b strings.Builder
	b.WriteString(r.Level.String())
	b.WriteString(r.Message)
	b.WriteString(h.of)
	r.Attrs(func(a slog.Attr) bool {
		name(&b, a)
		return true
	})
	return b.String()
}

func name(b *strings.Builder, a slog.Attr) {
	if a.Value.Kind() == slog.KindString && !passing[a.Key] {
		b.WriteString("\x00" + a.Key + "=" + a.Value.String())
	}
}

// hold counts a line whose kind is silent, and returns false for one to write now.
func (s *repeats) hold(kind string, r slog.Record, to slog.Handler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[kind]; k != nil {
		k.count++
		k.last, k.to = r.Clone(), to
		return true
	}
	if len(s.kinds) < kindsMost {
		if s.kinds == nil {
			s.kinds = map[string]*repeat{}
		}
		s.kinds[kind] = &repeat{timer: time.AfterFunc(Silence, func() { s.end(kind) })}
	}
	return false
}

// end writes the line that a silence held back. Only a kind that was quiet for a whole silence is forgotten.
func (s *repeats) end(kind string) {
	s.mu.Lock()
	k := s.kinds[kind]
	if k == nil {
		s.mu.Unlock()
		return
	}
	held := *k
	if k.count = 0; held.count == 0 {
		delete(s.kinds, kind)
	} else {
		k.timer.Reset(Silence)
	}
	s.mu.Unlock()
	held.write()
}

// write writes the last of the lines that were held back, with their number.
func (k *repeat) write() {
	if k.count == 0 {
		return
	}
	k.last.AddAttrs(slog.Int("lines", k.count))
	_ = k.to.Handle(context.Background(), k.last) // there is no caller to return the error to
}

// flush writes all lines that are held back, and forgets the kinds.
func (s *repeats) flush() {
	s.mu.Lock()
	kinds := s.kinds
	s.kinds = nil
	s.mu.Unlock()
	for _, k := range kinds {
		k.timer.Stop()
		k.write()
	}
}
