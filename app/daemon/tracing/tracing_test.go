// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
)

// A call from a traced client to a traced server leaves both spans at the
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
	stop, err := SetUp(t.Context(), s, "router")
	if err != nil {
		t.Fatal(err)
	}
	cfg := hrpc.Config{Interceptors: ServerInterceptors(s)}
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
	client := hrpc.NewClient(hrpc.ClientConfig{Interceptors: ClientInterceptors(s)})
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

// Without an endpoint nothing is set up and no server has an interceptor.
func TestUntracedCallsPayNothing(t *testing.T) {
	s, err := settings.Load(settings.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := SetUp(t.Context(), s, "rm")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if n := len(ServerInterceptors(s)) + len(ClientInterceptors(s)); n != 0 {
		t.Errorf("%d interceptors", n)
	}
}

// An invalid endpoint URL prevents the start: the exporter would send spans elsewhere.
func TestAnEndpointThatIsNoURLIsRefused(t *testing.T) {
	for _, to := range []string{"nonsense", "127.0.0.1:4318", "ftp://x/y", "http://", "://"} {
		s, err := settings.Load(settings.Sources{Defines: []string{"creel.trace.endpoint=" + to}})
		if err != nil {
			continue // refused before
		}
		if _, err = SetUp(t.Context(), s, "router"); err == nil || !strings.Contains(err.Error(), "creel.trace.endpoint") {
			t.Errorf("%q: %v", to, err)
		}
	}
}
