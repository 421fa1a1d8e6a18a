// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// A watched server shows its calls on /metrics and audits those that change
// something.
func TestCallsOfAServerAreCountedAndAudited(t *testing.T) {
	var log bytes.Buffer
	h := health.New()
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
	h.Mount(router)
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
