// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
)

// historyOf reads a history; ok is false while the router has none.
func historyOf(t *testing.T, web, query string) (doc rest.HistoryDoc, ok bool) {
	t.Helper()
	r := call(t, web, "GET", "/api/v1/history"+query, "")
	if r.status != http.StatusOK {
		return doc, false
	}
	if err := json.Unmarshal([]byte(r.body), &doc); err != nil {
		t.Fatal(err)
	}
	return doc, true
}

// A router samples what it sees: the federation, its members and its queues have the same figures as the other pages,
// at steps up to now.
func TestHistoryIsServedBySubject(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web := f.Routers[0].Web
	submit(t, f, web, "one", "default") // an AM runs in neither member: it waits
	newest := func(of rest.Figures) float32 {
		if len(of) == 0 || of[len(of)-1] == nil {
			return -1
		}
		return *of[len(of)-1]
	}
	f.Until("the history has the waiting application", func() bool {
		call(t, web, "GET", "/api/v1/apps", "") // the list of applications is renewed for its viewers
		doc, ok := historyOf(t, web, "?subject=queue/root.default")
		return ok && newest(doc.Waiting) == 1 && newest(doc.Grants) == 0 // a rate needs two samples
	})
	began := time.Now()
	for query, steps := range map[string]int{
		"": 720, "?range_s=600": 120, "?range_s=86400&step_s=5": 720, "?range_s=86400": 1440, "?step_s=60": 60,
		"?range_s=61&subject=member/sc-a": 13, "?subject=queue/root.default&range_s=1": 1,
	} {
		doc, ok := historyOf(t, web, query)
		to := doc.From.Add(time.Duration(float64(steps) * doc.StepS * float64(time.Second)))
		if !ok || doc.Steps != steps || to.After(time.Now()) || began.Sub(to) > 2*time.Minute {
			t.Errorf("%q: %d steps of %v s from %v, want %d", query, doc.Steps, doc.StepS, doc.From, steps)
		}
		if doc.StepS == 5 && len(doc.Use) != steps {
			t.Errorf("%q: %d figures of %d steps", query, len(doc.Use), steps)
		}
	}
	queue, _ := historyOf(t, web, "?subject=queue/root.default&range_s=5")
	if is := newest(queue.Entitlement); is < 0.699 || is > 0.701 || newest(queue.Use) != 0 || newest(queue.Grants) != 0 {
		t.Errorf("the queue is entitled to %v, uses %v and was granted %v", is, newest(queue.Use), newest(queue.Grants))
	}
	fed, _ := historyOf(t, web, "?range_s=5")
	if is := newest(fed.Entitlement); is < 0.999 || is > 1 || newest(fed.Waiting) != 1 || fed.Subject != "federation" {
		t.Errorf("the federation's queues are entitled to %v; %v applications wait", is, newest(fed.Waiting))
	}
	for query, code := range map[string]string{
		"?subject=member/none": "subcluster_not_found", "?subject=queue/root.none": "queue_not_found",
		"?subject=x": "invalid_request", "?range_s=0": "invalid_request", "?range_s=86401": "invalid_request",
		"?step_s=7": "invalid_request", "?step_s=x": "invalid_request",
	} {
		if r := call(t, web, "GET", "/api/v1/history"+query, ""); at(t, r.body, "code") != code {
			t.Errorf("%q: %s", query, strings.TrimSpace(r.body))
		}
	}
}
