// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

// However many viewers look at the queues and the nodes of a hundred members, each member is asked no more than once
// a second for either; a member that fails is listed as missing and is in no sum.
func TestViewersOfAHundredMembersShareOneSnapshot(t *testing.T) {
	const total = 100
	var mu sync.Mutex
	calls := map[string]int{}
	queues, nodes := benchDocuments(0, 3)["/scheduler"], benchDocuments(0, 3)["/nodes"]
	var members []subcluster.Status
	for i := range total {
		m := subcluster.Status{State: subcluster.StateActive}
		m.ID = creel.SubclusterID(fmt.Sprintf("sc-%02d", i))
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			calls[r.URL.Path]++
			mu.Unlock()
			if i == 7 {
				http.Error(w, "ill", http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, map[string]string{base + "/scheduler": queues, base + "/nodes": nodes}[r.URL.Path])
		}))
		t.Cleanup(s.Close)
		m.Addresses.Web = s.Listener.Addr().String()
		m.Load.Metrics.TotalMB = 1 << 20
		members = append(members, m)
	}
	web := overStatuses(t, members)
	address := strings.TrimPrefix(web.URL, "http://")

	began := time.Now()
	var viewers sync.WaitGroup
	for range 40 {
		viewers.Go(func() {
			for range 3 {
				for _, path := range []string{"/api/v1/scheduler", "/api/v1/nodes?limit=1000"} {
					if r := call(t, address, "GET", path, ""); r.status != 200 {
						t.Errorf("%s: %d %s", path, r.status, r.body)
					}
				}
			}
		})
	}
	viewers.Wait()
	refreshes := 1 + int(time.Since(began)/time.Second)
	mu.Lock()
	for _, path := range []string{base + "/scheduler", base + "/nodes"} {
		if n := calls[path]; n < total || n > total*refreshes {
			t.Errorf(
				"240 looks in %v: %d calls of %s, want %d to %d",
				time.Since(began),
				n,
				path,
				total,
				total*refreshes,
			)
		}
	}
	mu.Unlock()

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
	body := call(t, address, "GET", "/api/v1/scheduler", "").body
	if err := json.Unmarshal([]byte(body), &tree); err != nil {
		t.Fatal(err)
	}
	if q := tree.Scheduler.Info.Queues.Queue; len(q) != 100 || q[0].NumApplications != 3*(total-1) {
		t.Errorf("%d queues, the first %+v", len(q), q[:1])
	}
	if m := tree.Missing; len(m) != 1 || m[0].Member != "sc-07" || m[0].Reason == "" {
		t.Errorf("missing: %+v", m)
	}
	var list rest.NodesDoc
	if err := json.Unmarshal([]byte(call(t, address, "GET", "/api/v1/nodes", "").body), &list); err != nil {
		t.Fatal(err)
	}
	if list.Matching != total-1 || len(list.Missing) != 1 || list.Missing[0].Member != "sc-07" {
		t.Errorf("%d nodes, missing %+v", list.Matching, list.Missing)
	}
}
