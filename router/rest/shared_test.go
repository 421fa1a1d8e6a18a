// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// However many viewers look at the queues and the nodes of a hundred members, each member is asked no more than once
// a second for either; a member that fails is listed as missing and is in no sum.
func TestViewersOfAHundredMembersShareOneSnapshot(t *testing.T) {
	synctest.Test(t, viewersOfAHundredMembers)
}

// viewersOfAHundredMembers runs in virtual time: a slow machine makes no list old.
func viewersOfAHundredMembers(t *testing.T) {
	const total = 100
	var mu sync.Mutex
	calls := map[string]int{}
	queues, nodes := benchDocuments(0, 3)["/scheduler"], benchDocuments(0, 3)["/nodes"]
	asked := answering(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls[r.URL.Path]++
		mu.Unlock()
		if r.URL.Hostname() == "sc-07" {
			http.Error(w, "ill", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, map[string]string{base + "/scheduler": queues, base + "/nodes": nodes}[r.URL.Path])
	})
	var members []subcluster.Status
	for i := range total {
		m := subcluster.Status{State: subcluster.StateActive}
		m.ID = creel.SubclusterID(fmt.Sprintf("sc-%02d", i))
		m.Addresses.Web = string(m.ID) + ":80"
		m.Load.Metrics.TotalMB = 1 << 20
		members = append(members, m)
	}
	_, web := handlerOver(t, members, rest.Config{Started: time.Now()}, remote.Config{
		User: "creel", KindOf: yarnrpc.KindOf, Transport: func(http.RoundTripper) http.RoundTripper { return asked },
	})
	get := func(path string) []byte {
		w := httptest.NewRecorder()
		web.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	for second := range 2 {
		var viewers sync.WaitGroup
		for range 40 {
			viewers.Go(func() {
				for range 3 {
					get("/api/v1/scheduler")
					get("/api/v1/nodes?limit=1000")
				}
			})
		}
		viewers.Wait()
		mu.Lock()
		for _, path := range []string{base + "/scheduler", base + "/nodes"} {
			if n := calls[path]; n != total*(second+1) {
				t.Errorf("120 looks in second %d: %d calls of %s, want %d", second, n, path, total*(second+1))
			}
		}
		mu.Unlock()
		time.Sleep(time.Second)
	}

	var tree struct {
		Scheduler struct {
			Info struct {
				Queues struct {
					Queue []struct {
						QueuePath       string
						NumApplications int
					}
				} `json:"queues"`
			} `json:"schedulerInfo"`
		}
		Missing []struct{ Member, Reason string }
	}
	if err := json.Unmarshal(get("/api/v1/scheduler"), &tree); err != nil {
		t.Fatal(err)
	}
	if q := tree.Scheduler.Info.Queues.Queue; len(q) != 100 || q[0].NumApplications != 3*(total-1) {
		t.Errorf("%d queues, the first %+v", len(q), q[:1])
	}
	if m := tree.Missing; len(m) != 1 || m[0].Member != "sc-07" || m[0].Reason == "" {
		t.Errorf("missing: %+v", m)
	}
	var list rest.NodesDoc
	if err := json.Unmarshal(get("/api/v1/nodes"), &list); err != nil {
		t.Fatal(err)
	}
	if list.Matching != total-1 || len(list.Missing) != 1 || list.Missing[0].Member != "sc-07" {
		t.Errorf("%d nodes, missing %+v", list.Matching, list.Missing)
	}
}

// answering serves the calls of a router without a network, which virtual time would not wait for.
type answering http.HandlerFunc

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	return w.Result(), nil
}
