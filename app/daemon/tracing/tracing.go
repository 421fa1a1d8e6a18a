// SPDX-License-Identifier: Apache-2.0

// Package tracing sends the spans of this process to an OpenTelemetry
// collector.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"github.com/creelrm/creel/app/daemon/build"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/settings"
)

// On reports whether spans are exported. If not, servers have no interceptor for them, and calls pay nothing.
func On(s *settings.Settings) bool { return endpoint(s) != "" }

// endpoint returns the destination of spans: creel.trace.endpoint, or OpenTelemetry's environment variables.
func endpoint(s *settings.Settings) string {
	if to := cmp.Or(s.String("creel.trace.endpoint"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")); to != "" {
		return to
	}
	if base := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
		return strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	return ""
}

// SetUp exports this process's spans to that endpoint, by OTLP over HTTP. The returned function sends the last of
// them and stops. For a call with a trace, the caller decides on sampling; of the others the fraction
// creel.trace.sample is sampled.
func SetUp(ctx context.Context, s *settings.Settings, role string) (stop func(), err error) {
	if !On(s) {
		return func() {}, nil
	}
	to := endpoint(s)
	if u, err := url.Parse(to); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		// Otherwise the exporter would log Go's message, and send to its default endpoint.
		return nil, s.Problem("creel.trace.endpoint", fmt.Sprintf("traces cannot be sent to %q", to),
			"give a URL such as http://127.0.0.1:4318/v1/traces (OTEL_EXPORTER_OTLP_ENDPOINT: without the path)")
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to))
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

// ServerInterceptors returns the interceptors of every RPC server.
func ServerInterceptors(s *settings.Settings) []hrpc.Interceptor {
	if !On(s) {
		return nil
	}
	return []hrpc.Interceptor{telemetry.Trace(otel.GetTracerProvider())}
}

// ClientInterceptors returns the interceptors of every client that makes calls for others.
func ClientInterceptors(s *settings.Settings) []hrpc.ClientInterceptor {
	if !On(s) {
		return nil
	}
	return []hrpc.ClientInterceptor{telemetry.TraceClient(otel.GetTracerProvider())}
}

// Provider makes the spans of applications; nil if spans are not exported.
func Provider(s *settings.Settings) api.TracerProvider {
	if !On(s) {
		return nil
	}
	return otel.GetTracerProvider()
}

// Handler wraps a web server. It makes a span for each request for YARN's or creel's documents, as a child of the
// caller's span. The dashboard's stream, health and metrics have none, because they are requested repeatedly. It is
// nil if spans are not exported.
func Handler(s *settings.Settings) func(http.Handler) http.Handler {
	if !On(s) {
		return nil
	}
	return func(h http.Handler) http.Handler {
		return otelhttp.NewHandler(h, "",
			otelhttp.WithFilter(func(r *http.Request) bool { return documents(r.URL.Path) != "" }),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
				return r.Method + " " + documents(r.URL.Path)
			}))
	}
}

// named are the documents that spans are named after.
var named = map[string]bool{
	"apps": true, "nodes": true, "scheduler": true, "metrics": true, "queues": true, "policies": true,
	"subclusters": true, "overview": true, "rebalancer": true, "containers": true, "reservation": true,
}

// documents returns the kind of document that a path requests, without names chosen by clients; "" for a path without
// spans.
func documents(path string) string {
	for _, base := range [...]string{"/ws/v1/cluster/", "/api/v1/"} {
		if rest, ok := strings.CutPrefix(path, base); ok {
			first, below, _ := strings.Cut(rest, "/")
			switch {
			case !named[first]:
				return base + "..."
			case below != "":
				return base + first + "/..."
			}
			return base + first
		}
	}
	return ""
}

// Transport wraps the client of members' web servers; nil if spans are not exported.
func Transport(s *settings.Settings) func(http.RoundTripper) http.RoundTripper {
	if !On(s) {
		return nil
	}
	return func(t http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(t) }
}
