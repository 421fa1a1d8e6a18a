// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/server"
)

// tracedHomes makes a span for each claim and move of a traced submission.
type tracedHomes struct {
	server.Homes
	tracer trace.Tracer
}

func (t tracedHomes) span(ctx context.Context, name string, app creel.ApplicationID) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("creel.application", app.String())))
}

func endSpan(span trace.Span, home creel.SubclusterID, err error) {
	span.SetAttributes(attribute.String("creel.home", string(home)))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Claim implements router.Homes.
func (t tracedHomes) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	ctx, span := t.span(ctx, "claim", app)
	defer func() { endSpan(span, home, err) }()
	return t.Homes.Claim(ctx, app, member, placement)
}

// Move implements router.Homes.
func (t tracedHomes) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (home creel.SubclusterID, err error) {
	ctx, span := t.span(ctx, "move", app)
	defer func() { endSpan(span, home, err) }()
	return t.Homes.Move(ctx, app, from, to, number, placement)
}
