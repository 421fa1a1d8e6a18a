// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
)

// The sentence, the counts, the list and the filter agree: an application with asks that are not granted waits, even
// if its AM runs.
func TestRunningApplicationWithOpenAsksWaits(t *testing.T) {
	// The members' clocks are years apart. Only differences on one clock count.
	web := overMembers(t,
		func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"now":500000,"apps":[`+
				`{"id":"application_1_0001","state":"RUNNING","queue":"root.a","started":3},`+
				`{"id":"application_1_0002","state":"RUNNING","queue":"root.a","started":2,`+
				`"waits_for":"queue_limit","waits_in":"root.a","waits_since":410000},`+
				`{"id":"application_1_0003","state":"ACCEPTED","queue":"root.b","started":1,"waits_for":"am_limit",`+
				`"waits_since":440000},`+
				`{"id":"application_1_0004","state":"FINISHED","queue":"root.b","started":1}]}`)
		},
		func(w http.ResponseWriter, _ *http.Request) { // the UAM of 0001 waits, although home granted everything
			io.WriteString(w, `{"now":1800000000000,"apps":[{"id":"application_1_0001","state":"RUNNING","queue":"root.a",`+
				`"started":5,"unmanaged":true,"name":"uam","tags":["creel-uam"],"waits_for":"no_node_has_room",`+
				`"waits_since":1799999980000}]}`)
		})
	var doc rest.OverviewDoc
	fetch(t, web.URL+"/api/v1/overview", &doc)
	if a := doc.Apps; a == nil || a.Running != 0 || a.Waiting != 3 || a.Ended != 1 || a.OldestWait < 90 || a.OldestWait > 200 {
		t.Errorf("counts: %+v", a)
	}
	if doc.State != router.Warn || !strings.HasPrefix(doc.Sentence, "More applications wait than run. 0 applications run") ||
		!strings.Contains(doc.Sentence, "3 waiting") {
		t.Errorf("%s: %s", doc.State, doc.Sentence)
	}
	var page rest.AppsDoc
	fetch(t, web.URL+"/api/v1/apps?state=waiting&group=queue", &page)
	if len(page.Applications) != 3 || page.Matching.Waiting != 3 || page.Matching.Running != 0 {
		t.Errorf("the list: %d rows, %+v", len(page.Applications), page.Matching)
	}
	for _, g := range page.Groups {
		if want := map[string]int64{"root.a": 2, "root.b": 1}[g.Key]; g.Waiting != want {
			t.Errorf("%s: %+v", g.Key, g)
		}
	}
	var members rest.SubclustersDoc
	fetch(t, web.URL+"/api/v1/subclusters", &members)
	if a := members.Subclusters[0].Apps; a.Waiting != 3 || members.Subclusters[1].Apps.Waiting != 0 {
		t.Errorf("by member: %+v", members.Subclusters)
	}
}

// A client that wants a current list (Cache-Control: no-cache) sees every change that was made before its request.
func TestCurrentListHasEarlierChanges(t *testing.T) {
	var state atomic.Value
	state.Store("RUNNING")
	web := overMembers(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"now":500000,"apps":[{"id":"application_1_0001","state":"`+state.Load().(string)+`","started":3}]}`)
	})
	list := func() string {
		q, err := http.NewRequest(http.MethodGet, web.URL+"/api/v1/apps", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Cache-Control", "no-cache")
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var page rest.AppsDoc
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || len(page.Applications) != 1 {
			t.Fatalf("%+v: %v", page, err)
		}
		var row apps.Row
		if err := json.Unmarshal(page.Applications[0], &row); err != nil {
			t.Fatal(err)
		}
		return row.State
	}
	for _, want := range []string{"RUNNING", "KILLED", "RUNNING", "FINISHED"} {
		state.Store(want)
		if got := list(); got != want {
			t.Errorf("the list has %s, want %s", got, want)
		}
	}
}

// While no member has sent its applications, the overview has no counts: 0 would mean that nothing runs. It does not
// wait for a silent member as long as a list does.
func TestOverviewWithoutAListHasNoCounts(t *testing.T) {
	over := make(chan struct{})
	for what, member := range map[string]http.HandlerFunc{
		"a silent member": func(http.ResponseWriter, *http.Request) { <-over },
		"an ill member":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "ill", http.StatusInternalServerError) },
	} {
		t.Run(what, func(t *testing.T) {
			members := statuses(t, member)
			if what == "a silent member" {
				t.Cleanup(func() { close(over) })
			}
			members[0].Load.Metrics.AppsRunning = 7
			web := overStatuses(t, members)
			began := time.Now()
			var doc rest.OverviewDoc
			fetch(t, web.URL+"/api/v1/overview", &doc)
			if doc.Apps != nil {
				t.Errorf("counts: %+v", doc.Apps)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("it took %v", took)
			}
			if !strings.Contains(doc.Sentence, "7 applications run") {
				t.Errorf("it does not use the member's own numbers: %s", doc.Sentence)
			}
		})
	}
}
