// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// rawError finds texts of Go's errors.
var rawError = regexp.MustCompile(`(Get|Post|Put|Delete) \\?"|dial tcp|i/o timeout|context (deadline|canceled)|\bEOF\b`)

// surfaces are the documents and pages that people read of a router; %s is an application.
var surfaces = []string{
	"/", "/apps", "/apps/%s", "/queues", "/policies", "/policies/root.default", "/members", "/members/sc-1", "/rebalancer", "/operations",
	"/api/v1/overview", "/api/v1/apps", "/api/v1/apps/%s/why", "/api/v1/queues", "/api/v1/queues/history", "/api/v1/queues/mends",
	"/api/v1/policies", "/api/v1/policies/root.default", "/api/v1/policies/root.default/history", "/api/v1/rebalancer",
	"/api/v1/moves", "/api/v1/subclusters", "/api/v1/scheduler", "/api/v1/nodes", "/api/v1/daemons", "/api/v1/system", "/api/v1/view",
	"/ws/v1/cluster/apps", "/ws/v1/cluster/apps/%s", "/ws/v1/cluster/apps/%s/appattempts", "/ws/v1/cluster/apps/%s/state",
	"/ws/v1/cluster/scheduler", "/ws/v1/cluster/metrics", "/ws/v1/cluster/nodes", "/ws/v1/cluster/info",
}

// ofTheStore are the surfaces that only the store has: a router that has never read them has nothing to show.
var ofTheStore = []string{"/api/v1/queues/history", "/api/v1/queues/mends", "/api/v1/policies/root.default/history"}

// ofHome are the documents that only the home of the application has.
var ofHome = []string{
	"/ws/v1/cluster/apps/%s", "/ws/v1/cluster/apps/%s/appattempts", "/ws/v1/cluster/apps/%s/state",
}

// longest is far above the half second for which an answer waits for the store, and the two seconds for which "why"
// waits for a member; without a bound the longest took 15 s. storeDelay is longer than a call's time-out.
const (
	longest    = 5 * time.Second
	storeDelay = 2 * time.Second
)

// TestPagesAnswerWithoutTheStore reads all surfaces of a router while the store is stopped, killed or slow, and while
// the home of an application is lost. Each of them answers within longest. Reads of a router that knows the application
// are complete but for the parts that only the store has. No surface has the text of a Go error.
func TestPagesAnswerWithoutTheStore(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	path := redistest.NewProxy(t, server.Addr)
	t.Cleanup(path.Close)
	f := found(t, "redis://"+path.Addr, "")
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	id := f.newID()
	f.submitSoon(id)
	m := f.am(client, id)
	if err := m.register(); err != nil {
		t.Fatal(err)
	}
	m.more(f, 1)
	home := f.member(f.homes(id)[0])
	cold := f.startRouter("router-cold", f.storeURL)
	f.await("the second router lists the application", func() bool {
		return strings.Contains(call(t, cold, http.MethodGet, "/api/v1/apps", nil, nil).body, id)
	})
	read := func(when string, may ...string) {
		for _, d := range []*daemon{f.router, cold} {
			for _, path := range surfaces {
				a := call(t, d, http.MethodGet, strings.ReplaceAll(path, "%s", id), nil, nil)
				if a.took > longest {
					t.Errorf("%s: %s of %s took %v", when, path, d.Name, a.took)
				}
				if bad := rawError.FindString(a.body); bad != "" {
					t.Errorf("%s: %s of %s has the text %q: %s", when, path, d.Name, bad, a.body)
				}
				fails := d == cold && slices.Contains(ofTheStore, path) || slices.Contains(may, path)
				if a.code != http.StatusOK && !fails && !strings.HasSuffix(path, "/policies/root.default") {
					t.Errorf("%s: %s of %s is answered %d: %s", when, path, d.Name, a.code, a.body)
				}
			}
		}
	}
	unread := func() {
		f.await("the routers see that the store is away", func() bool {
			for _, d := range []*daemon{f.router, cold} {
				var v view
				call(t, d, http.MethodGet, "/api/v1/subclusters", nil, &v)
				if !strings.Contains(v.Frozen, "does not answer") {
					return false
				}
			}
			return true
		})
	}
	thawed := func() {
		f.await("the view is current", func() bool { return f.view().Frozen == "" && len(f.active()) == 2 })
	}
	read("well")
	server.Pause()
	read("just stopped")
	unread()
	read("stopped")
	server.Resume()
	thawed()
	path.Delay(storeDelay)
	read("slow")
	path.Heal()
	thawed()
	home.rm.Signal(syscall.SIGKILL)
	f.await("the home is lost", func() bool { return f.active()[home.id] == 0 })
	read("its home lost", ofHome...)
	for _, d := range []*daemon{f.router, cold} {
		var why struct {
			Last struct{ User, Queue, State string }
		}
		a := call(t, d, http.MethodGet, "/api/v1/apps/"+id+"/why", nil, &why)
		if l := why.Last; l.User != hadoop.OSUser(t) || l.Queue != "root.default" || l.State != "RUNNING" {
			t.Errorf("home lost: %s reports %+v of the application: %s", d.Name, l, a.body)
		}
	}
	server.Kill()
	unread()
	read("its home lost and the store killed", ofHome...)
}
