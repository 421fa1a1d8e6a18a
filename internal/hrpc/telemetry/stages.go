// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Kept encodes the span of a context, to be stored with an application. Later events become its child spans, even in
// other processes and after restarts. It is nil without a span, or if the span is not sampled.
func Kept(ctx context.Context) []byte {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() || !sc.IsSampled() {
		return nil
	}
	return TraceInfo(sc).SpanContext
}

// Stages creates the spans of an application's stages below its stored span. Each span begins at the end of the
// previous one, so that the trace shows where time was spent. All methods do nothing on nil, and are safe for
// concurrent use.
type Stages struct {
	tracer trace.Tracer
	parent trace.SpanContext
	attrs  []attribute.KeyValue

	mu   sync.Mutex
	last time.Time
	seen map[string]bool
}

// NewStages begins the first stage at from. It returns nil without a provider, or if kept is not a sampled span.
func NewStages(p trace.TracerProvider, kept []byte, from time.Time, attrs ...attribute.KeyValue) *Stages {
	c, ok := traceparent(kept)
	if p == nil || !ok || !c.TraceFlags.IsSampled() {
		return nil
	}
	return &Stages{
		tracer: p.Tracer(scope), parent: trace.NewSpanContext(c), attrs: attrs, last: from, seen: map[string]bool{},
	}
}

// Reached ends a stage at the first call for it.
func (s *Stages) Reached(stage string, attrs ...attribute.KeyValue) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[stage] {
		return
	}
	s.seen[stage] = true
	now := time.Now()
	_, span := s.tracer.Start(s.Context(context.Background()), stage, trace.WithTimestamp(s.last),
		trace.WithAttributes(s.attrs...), trace.WithAttributes(attrs...))
	span.End(trace.WithTimestamp(now))
	s.last = now
}

// Skip marks stages as reached, without a span: they ended before a restart.
func (s *Stages) Skip(stages ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stage := range stages {
		s.seen[stage] = true
	}
}

// Context adds the stored span to a context, for calls on behalf of the application.
func (s *Stages) Context(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, s.parent)
}
