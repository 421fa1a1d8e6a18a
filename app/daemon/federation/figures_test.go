// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
)

// Metrics of a router and a ResourceManager match the federation: members, nodes, memory, queues, and the requests
// just made, by route.
func TestMetricsMatchState(t *testing.T) {
	dir := t.TempDir()
	s, err := federation.Settings(dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	store, closeStore, err := role.OpenStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	fed, err := federation.New(t.Context(), federation.Config{
		Subclusters: 2, Nodes: 3, Routers: 1,
		NodeSize: creel.NewResource(8192, 8), NodeHeartbeat: 50 * time.Millisecond,
		Dir: dir, Store: store, Settings: s, Lease: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer fed.Close()
	get := func(web, path string) string {
		resp, err := http.Get("http://" + web + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		web  string
		want []string
	}{
		{fed.Routers[0].Address("web"), []string{
			`creel_members{state="active"} 2`, `creel_members{state="lost"} 0`, "creel_view_frozen 0", "creel_view_age_seconds ",
			`creel_router_claims_moved_total{reason="refused"} 0`, `creel_router_claims_moved_total{reason="not_sent"} 0`,
			`creel_router_claims_moved_total{reason="unclear"} 0`,
			`creel_breaker_state{calls="read",state="closed",subcluster="sc-1"} 1`,
			`creel_breaker_state{calls="list",state="open",subcluster="sc-2"} 0`,
		}},
		{fed.RMs[0].Address("web"), []string{
			`creel_rm_nodes{state="RUNNING",subcluster="sc-1"} 3`,
			`creel_rm_applications{state="running",subcluster="sc-1"} 0`,
			`creel_rm_memory_bytes{kind="total",subcluster="sc-1"} 2.5769803776e+10`,
			`creel_rm_vcores{kind="total",subcluster="sc-1"} 24`,
			`creel_rm_queue_memory_bytes{kind="guaranteed",queue="root",subcluster="sc-1"} 2.5769803776e+10`,
			`creel_rm_queue_applications{queue="root",state="pending",subcluster="sc-1"} 0`,
			`creel_rm_containers{state="allocated",subcluster="sc-1"} 0`,
			`creel_rm_queue_preempted_containers_total{queue="root",subcluster="sc-1"} 0`,
			`creel_rm_grant_wait_seconds_bucket{subcluster="sc-1",le="0.001"} 0`,
		}},
	} {
		get(c.web, "/ws/v1/cluster/info")
		get(c.web, "/ws/v1/cluster/metrics")
		get(c.web, "/ws/v1/cluster/apps/application_1_0001")
		get(c.web, "/no/such/path/as/this")
		text := get(c.web, "/prom")
		for _, want := range append(c.want, "creel_build_info{",
			`creel_http_request_duration_seconds_count{code="2xx",method="GET",route="/ws/v1/cluster/info"} `,
			`code="4xx",method="GET",route="/ws/v1/cluster/apps/{`, `creel_http_requests_in_flight 1`) {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not tell %s", c.web, want)
			}
		}
		for _, leaks := range []string{"application_1_0001", "as/this"} {
			if strings.Contains(text, leaks) {
				t.Errorf("a client's path is a label: %s", leaks)
			}
		}
	}
}
