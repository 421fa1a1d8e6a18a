// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
)

// A list sorted by a column has each row once over its pages, in the same order as one long page.
func TestSortedListsArePagedCompletely(t *testing.T) {
	const many = 23
	web := overMembers(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			nodes := make([]string, many)
			for i := range nodes {
				nodes[i] = fmt.Sprintf(`{"id":"n%02d:1","state":"RUNNING","rack":"/r%d","usedMemoryMB":%d,"availMemoryMB":%d}`,
					i, i%3, i*i%7, 100-i*i%7)
			}
			io.WriteString(w, `{"nodes":{"node":[`+strings.Join(nodes, ",")+`]}}`)
			return
		}
		apps := make([]string, many)
		for i := range apps {
			apps[i] = fmt.Sprintf(`{"id":"application_1_%04d","name":"n%d","user":"u","state":"RUNNING","queue":"root.a",`+
				`"started":%d,"containers":%d,"waits_for":%q,"waits_in":"root","waits_since":%d}`,
				i+1, i%4, 100+i, i*i%5, []string{"am_limit", ""}[i%2], 1-i%2)
		}
		io.WriteString(w, `{"apps":[`+strings.Join(apps, ",")+`]}`)
	})
	apps := func(query string) (ids []string, next string) {
		var doc rest.AppsDoc
		fetch(t, web.URL+"/api/v1/apps?"+query, &doc)
		for _, raw := range doc.Applications {
			var row apps.Row
			if err := json.Unmarshal(raw, &row); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, fmt.Sprint(row.Containers, " ", row.Name, " ", row.ID))
		}
		return ids, doc.Next
	}
	nodes := func(query string) (ids []string, next string) {
		var doc rest.NodesDoc
		fetch(t, web.URL+"/api/v1/nodes?"+query, &doc)
		for _, n := range doc.Nodes {
			ids = append(ids, fmt.Sprint(n.UsedMB, " ", n.ID))
		}
		return ids, doc.Next
	}
	for _, sorted := range []struct {
		query string
		read  func(query string) ([]string, string)
	}{
		{"", apps}, {"sort=containers", apps}, {"sort=-containers", apps}, {"sort=name", apps}, {"sort=-id", apps}, {"sort=-started", apps}, {"sort=-name", apps},
		{"", nodes}, {"sort=used_mb", nodes}, {"sort=-used", nodes}, {"sort=rack", nodes},
	} {
		whole, next := sorted.read(sorted.query + "&limit=1000")
		if len(whole) != many || next != "" {
			t.Fatalf("%q has %d rows, next %q", sorted.query, len(whole), next)
		}
		var parts []string
		for cursor, more := "", true; more; more = cursor != "" {
			var rows []string
			rows, cursor = sorted.read(sorted.query + "&limit=5&cursor=" + cursor)
			parts = append(parts, rows...)
		}
		if !slices.Equal(parts, whole) {
			t.Errorf("%q by pages:\n%q, whole:\n%q", sorted.query, parts, whole)
		}
	}
	for query, order := range map[string]func(a, b string) int{
		"sort=-containers": func(a, b string) int { return strings.Compare(a[:1], b[:1]) },
		"sort=containers":  func(a, b string) int { return strings.Compare(b[:1], a[:1]) },
		"sort=name":        func(a, b string) int { return strings.Compare(a[2:4], b[2:4]) },
		"sort=-id":         func(a, b string) int { return strings.Compare(b[5:], a[5:]) },
	} {
		if rows, _ := apps(query); !slices.IsSortedFunc(rows, order) {
			t.Errorf("%s: %q", query, rows)
		}
	}
	if rows, _ := nodes("sort=used_mb"); !slices.IsSortedFunc(rows, func(a, b string) int {
		return strings.Compare(b[:1], a[:1])
	}) {
		t.Errorf("nodes by use: %q", rows)
	}
	// A filter by the reason of the wait.
	if rows, _ := apps("waits_for=am_limit"); len(rows) != (many+1)/2 {
		t.Errorf("%d wait for the limit of AMs", len(rows))
	}
	if rows, _ := apps("waits_for=am_limit&waits_in=root.b"); len(rows) != 0 {
		t.Errorf("%q wait for a limit of root.b", rows)
	}
	for _, path := range []string{"apps", "nodes"} {
		if r := call(t, strings.TrimPrefix(web.URL, "http://"), "GET", "/api/v1/"+path+"?sort=colour", ""); r.status != 400 {
			t.Errorf("%s by colour: %d %s", path, r.status, r.body)
		}
	}
}
