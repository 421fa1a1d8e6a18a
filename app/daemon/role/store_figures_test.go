// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
)

// Each operation on a real Redis is counted by name and outcome.
func TestOperationsOfTheStoreAreCounted(t *testing.T) {
	server := redistest.Start(t)
	s, err := settings.Load(settings.Sources{Defines: []string{"creel.store.url=" + server.URL(), "creel.store.timeout=100ms"}})
	if err != nil {
		t.Fatal(err)
	}
	store, closeStore, err := OpenStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	d := daemon.Service{Health: health.New()}
	dependOnStore(&d, store, nil)
	mux := chi.NewRouter()
	d.Health.Mount(mux)

	if _, err := store.Records(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := store.Home(ctx, storetest.App(1)); err == nil {
		t.Fatal("a dead server answered")
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`creel_store_operation_duration_seconds_count{operation="records",result="ok"} 1`,
		`creel_store_operation_duration_seconds_count{operation="hget",result="unavailable"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("it does not tell %s", want)
			for line := range strings.Lines(w.Body.String()) {
				if strings.Contains(line, "operation_duration_seconds_count") {
					t.Log(line)
				}
			}
		}
	}
}
