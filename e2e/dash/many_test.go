// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// lone starts a router over a store whose members are only records, and returns its web address.
func lone(t *testing.T, store *memory.Store) string {
	t.Helper()
	s, err := settings.Load(settings.Sources{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := role.RouterSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	c.Client, c.Admin, c.Web = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.Poll, c.Log = 20*time.Millisecond, slog.New(slog.DiscardHandler)
	r, err := role.NewRouter(c, store)
	if err != nil {
		t.Fatal(err)
	}
	running := r.Start()
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r.Address("web")
}

// register writes a member that heartbeats once, with a load.
func register(t *testing.T, store *memory.Store, id creel.SubclusterID, lease time.Duration) {
	t.Helper()
	registerAt(t, store, subcluster.Member{ID: id, Epoch: 1, Lease: lease})
}

// registerAt is register for a member with addresses.
func registerAt(t *testing.T, store *memory.Store, m subcluster.Member) {
	t.Helper()
	load := subcluster.Load{Metrics: subcluster.ClusterMetrics{
		AppsRunning: 3, AppsPending: 1, ContainersAllocated: 40, ActiveNodes: 500, TotalMB: 1 << 20, AllocatedMB: 400 << 10,
		TotalVirtualCores: 1000, AllocatedVirtualCores: 300, ContainersPerSecond: 2,
	}, Queues: []subcluster.QueueLoad{
		{Queue: "root.batch", Capacity: creel.NewResource(600<<10, 600), Used: creel.NewResource(300<<10, 200)},
		{Queue: "root.prod", Capacity: creel.NewResource(400<<10, 400), Used: creel.NewResource(100<<10, 100)},
	}}
	text, err := load.JSON()
	if err != nil {
		t.Fatal(err)
	}
	m.Capability = string(text)
	if err := store.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func newStore() *memory.Store {
	return memory.New(memory.NewState("test", role.ValidPolicy), time.Now)
}

// firstPage loads the overview past the browser: how long it takes and how large it is.
func firstPage(t *testing.T, web string) (took time.Duration, size int) {
	t.Helper()
	began := time.Now()
	resp, err := http.Get("http://" + web + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page bytes.Buffer
	if _, err := io.Copy(&page, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", resp.Status, err)
	}
	return time.Since(began), page.Len()
}

// With a hundred members, one of them lost, the first page is small, marks sums that lack a member, and has every
// member in its matrix.
func TestAHundredMembersFitOnTheFirstPage(t *testing.T) {
	store := newStore()
	for i := range 100 {
		lease := time.Hour
		if i == 41 {
			lease = 50 * time.Millisecond
		}
		register(t, store, creel.SubclusterID(fmt.Sprintf("sc-%03d", i)), lease)
	}
	web := lone(t, store)
	b := newBrowser(t)
	b.open("http://" + web + "/")
	b.untilLive()
	b.until("the lost member is told of", func() bool { return strings.HasPrefix(b.text("#sentence"), "sc-041 is lost") })
	told := api[rest.OverviewDoc](t, web, "/api/v1/overview")
	if n := b.count("#matrix a"); n != 100 || b.count("#matrix a.old") != 1 {
		t.Errorf("%d members in the matrix, %d of them old", n, b.count("#matrix a.old"))
	}
	if text := b.text("#containers"); text != "3,960" || told.Sum.ContainersAllocated != 3960 {
		t.Errorf("containers: %s on the page, %d by the API, 40 on each of 99", text, told.Sum.ContainersAllocated)
	}
	if text := b.text("#partial"); !strings.Contains(text, "without sc-041") {
		t.Errorf("partial: %q", text)
	}
	b.axe("overview of a hundred members")
	b.screenshot("overview")
	b.open("http://" + web + "/members/sc-041")
	if text := b.text("main"); !strings.Contains(text, "old and in no sum") {
		t.Errorf("the lost member's page: %q", text)
	}
	b.axe("a lost member")
	took, size := firstPage(t, web)
	t.Logf("the first page of a hundred members: %d bytes in %v", size, took)
	if size > 200_000 {
		t.Errorf("the first page has %d bytes", size)
	}
}

// Without members, and in a frozen view, each page loads and says so.
func TestPagesWithoutMembersAndInAFrozenView(t *testing.T) {
	pages := []string{"/", "/apps", "/queues", "/members", "/policies", "/rebalancer", "/operations"}
	b := newBrowser(t)
	web := lone(t, newStore())
	for _, path := range pages {
		b.open("http://" + web + path)
		if text := b.text("#problem"); text != "" {
			t.Errorf("%s without members: %s", path, text)
		}
	}
	b.open("http://" + web + "/")
	if text := b.text("#sentence"); text != "No subcluster has registered yet. "+
		"Remedy: start a ResourceManager with this federation's creel.store.url." {
		t.Errorf("without members: %q", text)
	}
	b.axe("overview without members")

	store := newStore()
	for _, id := range []creel.SubclusterID{"sc-a", "sc-b", "sc-c"} {
		register(t, store, id, time.Second)
	}
	web = lone(t, store)
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(50 * time.Millisecond) {
		for _, id := range []creel.SubclusterID{"sc-a", "sc-b", "sc-c"} {
			if err := store.Heartbeat(t.Context(), subcluster.Heartbeat{ID: id, Epoch: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.open("http://" + web + "/members")
	b.until("the view is frozen", func() bool { return strings.Contains(b.text("#frozen"), "fell silent together") })
	for _, row := range b.rows("#members") {
		if row[1] != "active" {
			t.Errorf("in a frozen view a member is %q", row)
		}
	}
	for _, path := range pages {
		b.open("http://" + web + path)
		if text := b.text("#problem"); text != "" {
			t.Errorf("%s in a frozen view: %s", path, text)
		}
	}
}

// appsOf plays a member's web service: its applications as a router asks for them, and nothing else. Every tenth
// waits. whole counts the complete lists that it has sent.
func appsOf(t *testing.T, member, n int, whole *atomic.Int64) *httptest.Server {
	t.Helper()
	doc := subcluster.AppChanges{At: "1", Now: 1_700_000_000_000, Whole: true}
	for i := range n {
		line := &subcluster.AppLine{
			ID: fmt.Sprintf("application_%d_%04d", 1_700_000_000_000+int64(member), i+1), Name: fmt.Sprintf("job %d", i),
			User: fmt.Sprintf("user%d", i%50), Queue: "root.batch", Type: "SPARK", State: "RUNNING", Outcome: "UNDEFINED",
			Started: doc.Now - int64(i), Containers: 3, MemoryMB: 6144, VCores: 3, Viewers: "*",
		}
		if i%10 == 0 {
			line.State, line.Waits, line.WaitsIn, line.WaitsSince = "ACCEPTED", "am_limit", "root.batch", doc.Now-90_000
			line.Containers, line.MemoryMB, line.VCores = 0, 0, 0
		}
		doc.Apps = append(doc.Apps, line)
	}
	all, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/v1/apps/changes":
			http.NotFound(w, r)
		case r.URL.Query().Get("since") == "1":
			io.WriteString(w, `{"at":"1","now":1700000000000,"apps":[]}`)
		default:
			whole.Add(1)
			w.Write(all)
		}
	}))
	t.Cleanup(web.Close)
	return web
}

// Sixty members have 100,020 applications. Each page is bounded, and only changes are read again from the members.
func TestPagesOfAHundredThousandApplications(t *testing.T) {
	const members, each = 60, 1667
	store := newStore()
	var whole atomic.Int64
	for i := range members {
		id := creel.SubclusterID(fmt.Sprintf("sc-%02d", i))
		web := strings.TrimPrefix(appsOf(t, i, each, &whole).URL, "http://")
		registerAt(t, store, subcluster.Member{
			ID: id, Epoch: 1, Lease: time.Hour, Addresses: subcluster.Addresses{Web: web},
		})
	}
	web := lone(t, store)
	b := newBrowser(t)
	b.open("http://" + web + "/apps")
	b.until("the router has all applications", func() bool {
		apps := api[rest.OverviewDoc](t, web, "/api/v1/overview").Apps
		return apps != nil && apps.Running+apps.Waiting == members*each
	})
	for _, path := range []string{
		"/", "/apps", "/apps?sort=memory", "/apps?state=waiting", "/apps?queue=root.batch&user=user7", "/queues", "/members",
		"/members/sc-07", "/nodes", "/policies", "/rebalancer", "/events", "/operations",
	} {
		began := time.Now()
		b.open("http://" + web + path)
		took, size := time.Since(began), len(b.eval("document.documentElement.outerHTML"))
		t.Logf("%-40s %7d bytes %6.0f ms", path, size, float64(took.Microseconds())/1000)
		if size > 300_000 {
			t.Errorf("%s has %d bytes", path, size)
		}
		if text := b.text("#problem"); text != "" {
			t.Errorf("%s: %s", path, text)
		}
	}
	if n := whole.Load(); n != members {
		t.Errorf("the members sent %d complete lists, want one each", n)
	}
}
