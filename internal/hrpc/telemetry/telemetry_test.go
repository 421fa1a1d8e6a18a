// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/propertytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const protocol = "creel.test.TelemetryProtocol"

type handler = func(context.Context, proto.Message) (proto.Message, error)

// serve serves methods on a real socket until the test ends.
func serve(t *testing.T, cfg hrpc.Config, methods map[string]handler) (address string, s *hrpc.Server) {
	t.Helper()
	service := hrpc.Service{Protocol: protocol, Version: 1, Methods: map[string]hrpc.Method{}}
	for name, h := range methods {
		service.Methods[name] = hrpc.Method{
			NewRequest: func() proto.Message { return new(wrapperspb.StringValue) },
			Serve:      h,
			Inline:     name == "inline",
		}
	}
	cfg.Services, cfg.Simple = []hrpc.Service{service}, true
	s, err := hrpc.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), s
}

func dial(t *testing.T, address string, interceptors ...hrpc.ClientInterceptor) *hrpc.Peer {
	t.Helper()
	c := hrpc.NewClient(hrpc.ClientConfig{Interceptors: interceptors})
	t.Cleanup(func() { c.Close() })
	return c.Peer(hrpc.Target{Address: address, Protocol: protocol, Login: hrpc.Login{User: "alice"}})
}

func echo(_ context.Context, m proto.Message) (proto.Message, error) { return m, nil }

func call(ctx context.Context, p *hrpc.Peer, method string) error {
	return p.Call(ctx, method, wrapperspb.String("x"), new(wrapperspb.StringValue))
}

// recorder is a provider that exposes its ended spans.
func recorder(t *testing.T) (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { provider.Shutdown(context.Background()) })
	return provider, exporter
}

// A client calls a server that calls another: one trace, each span the child of the previous one, whichever process
// exports them.
func TestATraceFollowsACallThroughTwoServers(t *testing.T) {
	provider, exporter := recorder(t)
	back, _ := serve(t, hrpc.Config{Interceptors: []hrpc.Interceptor{Trace(provider)}}, map[string]handler{
		"inline": echo,
		"fails": func(context.Context, proto.Message) (proto.Message, error) {
			return nil, errors.New("no such thing")
		},
		"later": func(ctx context.Context, m proto.Message) (proto.Message, error) {
			reply := hrpc.Later(ctx)
			go reply(m, nil)
			return nil, hrpc.ErrLater
		},
	})
	behind := dial(t, back, TraceClient(provider))
	forward := func(method string) handler {
		return func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			return nil, call(ctx, behind, method)
		}
	}
	front, _ := serve(t, hrpc.Config{Interceptors: []hrpc.Interceptor{Trace(provider)}}, map[string]handler{
		"inline": forward("inline"), "later": forward("later"), "fails": forward("fails"),
	})
	p := dial(t, front, TraceClient(provider))
	for _, method := range []string{"inline", "later", "fails"} {
		t.Run(method, func(t *testing.T) {
			exporter.Reset()
			ctx, root := provider.Tracer("test").Start(context.Background(), "submission")
			err := call(ctx, p, method)
			root.End()
			if (err != nil) != (method == "fails") {
				t.Fatal(err)
			}
			spans := exporter.GetSpans()
			if len(spans) != 5 {
				t.Fatalf("%d spans: %v", len(spans), spans)
			}
			parent := root.SpanContext()
			for _, want := range []trace.SpanKind{trace.SpanKindClient, trace.SpanKindServer, trace.SpanKindClient, trace.SpanKindServer} {
				found := false
				for _, s := range spans {
					if s.Parent.SpanID() != parent.SpanID() {
						continue
					}
					found = true
					if s.SpanKind != want || s.Name != method ||
						s.SpanContext.TraceID() != root.SpanContext().TraceID() {
						t.Errorf(
							"below %s: %s of kind %v in trace %s",
							parent.SpanID(),
							s.Name,
							s.SpanKind,
							s.SpanContext.TraceID(),
						)
					}
					if failed := s.Status.Code == codes.Error; failed != (method == "fails") {
						t.Errorf("%v: status %v", s.SpanKind, s.Status)
					}
					if want == trace.SpanKindServer && !s.Parent.IsRemote() {
						t.Error("the parent of a server's span did not come over the wire")
					}
					parent = s.SpanContext
					break
				}
				if !found {
					t.Fatalf("no span of kind %v below %s", want, parent.SpanID())
				}
			}
		})
	}
}

// A caller's decision not to sample is followed, and a caller without a span begins a trace.
func TestTheCallerDecidesWhetherItIsTraced(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSyncer(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())),
	)
	defer provider.Shutdown(context.Background())
	address, _ := serve(
		t,
		hrpc.Config{Interceptors: []hrpc.Interceptor{Trace(provider)}},
		map[string]handler{"inline": echo},
	)
	p := dial(t, address)
	with := func(info hrpc.TraceInfo) context.Context {
		return hrpc.WithOptions(context.Background(), hrpc.CallOptions{Trace: info})
	}
	for _, c := range []struct {
		what    string
		info    hrpc.TraceInfo
		traceID string // "" when no span is to be recorded, "new" for any
		parent  string
	}{
		{"nothing", hrpc.TraceInfo{}, "new", "0000000000000000"},
		{"W3C", hrpc.TraceInfo{SpanContext: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}, "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"},
		{"W3C, not sampled", hrpc.TraceInfo{SpanContext: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")}, "", ""},
		{"HTrace's numbers", hrpc.TraceInfo{TraceID: 5, ParentID: -1}, "00000000000000000000000000000005", "ffffffffffffffff"},
		{"nonsense", hrpc.TraceInfo{SpanContext: []byte("00-4bf92f3577b34da6a3ce929d0e0e473-x")}, "new", "0000000000000000"},
	} {
		exporter.Reset()
		if err := call(with(c.info), p, "inline"); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		spans := exporter.GetSpans()
		if c.traceID == "" {
			if len(spans) != 0 {
				t.Errorf("%s: recorded %v", c.what, spans)
			}
			continue
		}
		if len(spans) != 1 || c.traceID != "new" && spans[0].SpanContext.TraceID().String() != c.traceID ||
			spans[0].Parent.SpanID().String() != c.parent {
			t.Errorf("%s: %+v", c.what, spans)
		}
	}
}

// FuzzSpanContext checks that a peer's bytes are read or ignored, and that a span that was read is sent unchanged.
func FuzzSpanContext(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), int64(0), int64(0))
	f.Add([]byte("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"), int64(1), int64(2))
	f.Add([]byte(nil), int64(-5), int64(1<<62))
	f.Fuzz(func(t *testing.T, b []byte, id, parent int64) {
		sc := SpanContext(hrpc.TraceInfo{TraceID: id, ParentID: parent, SpanContext: b})
		if !sc.IsValid() {
			return
		}
		if again := SpanContext(TraceInfo(sc)); !again.Equal(sc) {
			t.Errorf("%v became %v", sc, again)
		}
	})
}

func TestEachChangeHasOneAuditLine(t *testing.T) {
	var out bytes.Buffer
	subject := func(call *hrpc.Call, request proto.Message) (string, bool) {
		return request.(*wrapperspb.StringValue).GetValue(), call.Method != "inline"
	}
	address, _ := serve(
		t,
		hrpc.Config{Interceptors: []hrpc.Interceptor{Audit(slog.New(slog.NewJSONHandler(&out, nil)), subject)}},
		map[string]handler{
			"inline":  echo,
			"submit":  echo,
			"refused": func(context.Context, proto.Message) (proto.Message, error) { return nil, errors.New("not yours") },
			"busy":    func(context.Context, proto.Message) (proto.Message, error) { return nil, hrpc.Busy("later") },
		},
	)
	p := dial(t, address)
	ctx := hrpc.WithOptions(context.Background(), hrpc.CallOptions{CallerContext: hrpc.CallerContext{Context: "job 7"}})
	for _, method := range []string{"inline", "submit", "refused", "busy"} {
		call(ctx, p, method) // the server's errors are checked
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, want := range []struct{ operation, result string }{{"submit", "success"}, {"refused", "failure"}, {"busy", "busy"}} {
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
			t.Fatal(err)
		}
		if line["msg"] != "audit" || line["operation"] != want.operation || line["result"] != want.result || line["user"] != "alice" ||
			line["target"] != "x" ||
			line["caller_context"] != "job 7" ||
			line["auth"] != "SIMPLE" ||
			!strings.HasPrefix(line["from"].(string), "127.0.0.1:") ||
			len(line["client_id"].(string)) != 32 {
			t.Errorf("%s", lines[i])
		}
	}
}

func TestFiguresOfEachMethod(t *testing.T) {
	parked := make(chan func(proto.Message, error), 1)
	methods := map[string]handler{
		"inline": echo,
		"fails":  func(context.Context, proto.Message) (proto.Message, error) { return nil, errors.New("no") },
		"later": func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			parked <- hrpc.Later(ctx)
			return nil, hrpc.ErrLater
		},
	}
	table := hrpc.Service{
		Protocol: protocol,
		Methods:  map[string]hrpc.Method{"inline": {}, "fails": {}, "later": {}, "quiet": {}},
	}
	m := NewMetrics("client", []hrpc.Service{table})
	address, server := serve(t, hrpc.Config{Interceptors: []hrpc.Interceptor{m.Interceptor()}}, methods)
	m.Server(server.Stats)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	p := dial(t, address)
	for range 3 {
		if err := call(context.Background(), p, "inline"); err != nil {
			t.Fatal(err)
		}
	}
	if call(context.Background(), p, "fails") == nil {
		t.Fatal("no error")
	}
	waiting := make(chan error, 1)
	go func() { waiting <- call(context.Background(), p, "later") }()
	reply := <-parked
	got := figures(t, registry)
	for name, want := range map[string]float64{
		"calls_failed_total/fails": 1, "calls_failed_total/inline": 0, "calls_failed_total/later": 0,
		"calls_in_flight/fails": 0, "calls_in_flight/inline": 0, "calls_in_flight/later": 1,
		"call_duration_seconds/fails": 1, "call_duration_seconds/inline": 3, "call_duration_seconds/later": 0,
		"connections/": 1, "connections_accepted_total/": 1, "calls_busy_total/": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, want)
		}
	}
	if _, ok := got["call_duration_seconds/quiet"]; ok {
		t.Error("a method that nobody called has figures")
	}
	reply(wrapperspb.String("x"), nil)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if n := figures(t, registry)["call_duration_seconds/later"]; n != 1 {
		t.Errorf("%v answers of the parked call", n)
	}
}

// figures are the values of a scrape, by name and method; of a histogram, its count.
func figures(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			method := ""
			for _, l := range one.GetLabel() {
				if l.GetName() == "method" {
					method = l.GetValue()
				}
			}
			out[strings.TrimPrefix(f.GetName(), "creel_rpc_")+"/"+method] = one.GetGauge().
				GetValue() +
				one.GetCounter().
					GetValue() +
				float64(
					one.GetHistogram().GetSampleCount(),
				)
		}
	}
	return out
}
