// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/memory"
)

// metricsOf returns a daemon's metrics as Prometheus reads them.
func metricsOf(h *health.Health) string {
	mux := chi.NewRouter()
	h.Mount(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// A file with a secret that every user may read is a warning at the start and counts in the metric, until it is closed.
func TestOpenSecretFilesAreReported(t *testing.T) {
	dir := t.TempDir()
	site, secret := filepath.Join(dir, "yarn-site.xml"), filepath.Join(dir, "secret")
	write := func(url string) *settings.Settings {
		t.Helper()
		text := "<configuration><property><name>creel.store.url</name><value>" + url +
			"</value></property></configuration>"
		for path, text := range map[string]string{site: text, secret: strings.Repeat("s", 32)} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, err := settings.Load(settings.Sources{
			ConfDir: dir,
			Defines: []string{"creel.cluster.secret-file=" + secret},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for url, want := range map[string]string{
		"redis://:word@one:6379":                                "2",
		"redis-sentinel://one:1,two:1/m?sentinel_password=word": "2",
		"redis-cluster://creel:word@one:1,two:1":                "2",
		"redis://one:6379":                                      "1",
		"redis://creel@one:6379":                                "1",
	} {
		s := write(url)
		d := &daemon.Service{Health: health.New()}
		var log strings.Builder
		watchSecrets(d, secretFiles(s), nil, slog.New(slog.NewTextHandler(&log, nil)))
		if !strings.Contains(metricsOf(d.Health), "creel_secret_files_open "+want+"\n") {
			t.Errorf("%s: not %s open files:\n%s", url, want, metricsOf(d.Health))
		}
		if !strings.Contains(log.String(), secret) || strings.Contains(log.String(), site) != (want == "2") {
			t.Errorf("%s: %s", url, log.String())
		}
		for _, path := range []string{site, secret} {
			if err := os.Chmod(path, 0o640); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(metricsOf(d.Health), "creel_secret_files_open 0\n") {
			t.Errorf("%s: files are closed, and the metric is as before", url)
		}
	}
}

// Every daemon with a web port has the metric.
func TestDaemonsCountOpenSecretFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(secret, 0o604); err != nil {
		t.Fatal(err)
	}
	store := memory.New(memory.NewState("memory", ValidPolicy), time.Now)
	s := minimal(t, "creel.cluster.secret-file="+secret)
	const any = "127.0.0.1:0"
	check := func(role settings.Role, d *daemon.Service, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if !strings.Contains(metricsOf(d.Health), "creel_secret_files_open 1\n") {
			t.Errorf("a %s does not count the file", role)
		}
	}
	router, err := RouterSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	router.Client, router.Admin, router.Web = any, any, any
	r, err := NewRouter(router, store)
	check(settings.Router, &r.Service, err)
	proxy, err := ProxySettings(s)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Address = any
	p, err := NewProxy(proxy, store)
	check(settings.Proxy, &p.Service, err)
	plans, err := RebalancerSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	plans.Web = any
	b, err := NewRebalancer(plans, store)
	check(settings.Rebalancer, &b.Service, err)
	conf, err := RMSettings(s, store)
	if err != nil {
		t.Fatal(err)
	}
	ports := &conf.Ports
	ports.Client, ports.Scheduler, ports.Tracker, ports.Admin, conf.Web = any, any, any, any, any
	rm, err := NewRM(conf)
	check(settings.RM, &rm.Service, err)
}
