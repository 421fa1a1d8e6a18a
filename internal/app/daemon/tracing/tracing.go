// SPDX-License-Identifier: Apache-2.0

// Package tracing sends the spans of this process to an OpenTelemetry
// collector.
package tracing

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

	"github.com/creelrm/creel/internal/app/daemon/build"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/settings"
)

// On reports whether spans go anywhere. Where they do not, servers have no
// interceptor for them, and calls pay nothing.
func On(s *settings.Settings) bool { return s.String("creel.trace.endpoint") != "" }

// SetUp has this process's spans sent to creel.trace.endpoint, by OTLP over
// HTTP, until the returned function has sent the last of them. A caller that
// brings a trace decides whether it is sampled; of the others creel.trace.sample is.
func SetUp(ctx context.Context, s *settings.Settings, role string) (stop func(), err error) {
	if !On(s) {
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
				attribute.String("service.version", build.Read().Version),
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

// ServerInterceptors are those of every RPC server.
func ServerInterceptors(s *settings.Settings) []hrpc.Interceptor {
	if !On(s) {
		return nil
	}
	return []hrpc.Interceptor{telemetry.Trace(otel.GetTracerProvider())}
}

// ClientInterceptors are those of every client that calls for others.
func ClientInterceptors(s *settings.Settings) []hrpc.ClientInterceptor {
	if !On(s) {
		return nil
	}
	return []hrpc.ClientInterceptor{telemetry.TraceClient(otel.GetTracerProvider())}
}
