// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/settings"
)

// traced tells whether spans go anywhere. Where they do not, doors have no
// interceptor for them, and calls pay nothing.
func traced(s *settings.Settings) bool { return s.String("creel.trace.endpoint") != "" }

// setUpTraces has this process's spans sent to creel.trace.endpoint, by OTLP over
// HTTP, until the returned function has sent the last of them. A caller that
// brings a trace decides whether it is sampled; of the others creel.trace.sample is.
func setUpTraces(ctx context.Context, s *settings.Settings, role string) (stop func(), err error) {
	if !traced(s) {
		return func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(s.String("creel.trace.endpoint")))
	if err != nil {
		return nil, fmt.Errorf("creel.trace.endpoint: %w", err)
	}
	provider := trace.NewTracerProvider(
		trace.WithBatcher(exporter),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(s.Float("creel.trace.sample")))),
		trace.WithResource(
			resource.NewSchemaless(
				attribute.String("service.name", "creel-"+role),
				attribute.String("service.version", readBuild().Version),
			),
		),
	)
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("traces", "error", err) }))
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			slog.Warn("traces", "error", err)
		}
	}, nil
}

// clientInterceptors are those of every client that calls for others.
func clientInterceptors(s *settings.Settings) []hrpc.ClientInterceptor {
	if !traced(s) {
		return nil
	}
	return []hrpc.ClientInterceptor{telemetry.TraceClient(otel.GetTracerProvider())}
}
