// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// A call from a traced client to a traced door leaves both spans at the
// collector, named after the daemon.
func TestSpansReachTheCollector(t *testing.T) {
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/v1/traces" {
			t.Errorf("spans came to %s", r.URL.Path)
		}
		io.Copy(&got, r.Body)
	}))
	defer collector.Close()
	s, err := settings.Load(
		settings.Sources{
			Defines: []string{"creel.trace.endpoint=" + collector.URL + "/v1/traces", "creel.trace.sample=1"},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := setUpTraces(t.Context(), s, "router")
	if err != nil {
		t.Fatal(err)
	}
	cfg := rpcLimits(s)
	cfg.Simple = true
	cfg.Services = []hrpc.Service{{Protocol: "creel.test.Echo", Version: 1, Methods: map[string]hrpc.Method{
		"echoMethod": {
			NewRequest: func() proto.Message { return new(wrapperspb.StringValue) },
			Serve:      func(_ context.Context, m proto.Message) (proto.Message, error) { return m, nil },
		},
	}}}
	server, err := hrpc.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx, l) }()
	client := hrpc.NewClient(hrpc.ClientConfig{Interceptors: clientInterceptors(s)})
	peer := client.Peer(
		hrpc.Target{Address: l.Addr().String(), Protocol: "creel.test.Echo", Login: hrpc.Login{User: "alice"}},
	)
	if err := peer.Call(ctx, "echoMethod", wrapperspb.String("x"), new(wrapperspb.StringValue)); err != nil {
		t.Error(err)
	}
	client.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	for what, want := range map[string]int{"echoMethod": 2, "creel-router": 1, "alice": 1, "server.address": 1} {
		if n := bytes.Count(got.Bytes(), []byte(what)); n < want {
			t.Errorf("%q came %d times, want %d", what, n, want)
		}
	}
}

// Without an endpoint nothing is set up and no door has an interceptor.
func TestUntracedCallsPayNothing(t *testing.T) {
	s, err := settings.Load(settings.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := setUpTraces(t.Context(), s, "rm")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if c := rpcLimits(s); len(c.Interceptors) != 0 || len(clientInterceptors(s)) != 0 {
		t.Errorf("%d interceptors", len(c.Interceptors))
	}
}

// A watched door shows its calls on /metrics and audits those that change
// something.
func TestADoorIsWatched(t *testing.T) {
	var log bytes.Buffer
	h := newHealth()
	cfg := hrpc.Config{
		Simple:  true,
		ErrorOf: yarnrpc.ErrorOf,
		Logger:  slog.New(slog.NewJSONHandler(&log, nil)),
		Services: []hrpc.Service{
			yarnrpc.ApplicationClientProtocolService(yarnrpc.UnimplementedApplicationClientProtocol{}),
		},
	}
	server, err := watchedServer("client", cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx, l) }()
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	peer := yarnrpc.NewApplicationClientProtocolClient(client, l.Addr().String(), hrpc.Login{User: "alice"})
	app := yarnpb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 5, ID: 1})
	if _, err := peer.ForceKillApplication(
		ctx,
		&yarnpb.KillApplicationRequestProto{ApplicationId: app},
	); !errors.Is(
		err,
		creel.ErrNotEnabled,
	) {
		t.Error(err)
	}
	if _, err := peer.GetApplicationReport(
		ctx,
		&yarnpb.GetApplicationReportRequestProto{ApplicationId: app},
	); !errors.Is(
		err,
		creel.ErrNotEnabled,
	) {
		t.Error(err)
	}
	client.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	router := chi.NewRouter()
	h.mount(router)
	scrape := httptest.NewRecorder()
	router.ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	for _, method := range []string{"forceKillApplication", "getApplicationReport"} {
		want := `creel_rpc_calls_failed_total{door="client",method="` + method + `",protocol="` + yarnrpc.ApplicationClientProtocolName + `"} 1`
		if !strings.Contains(scrape.Body.String(), want) {
			t.Errorf("/metrics has no line %s", want)
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 ||
		!strings.Contains(
			lines[0],
			`"operation":"forceKillApplication","target":"application_5_0001","result":"failure"`,
		) {
		t.Errorf("audit:\n%s", log.String())
	}
}
