// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
)

// Each order holds over pages of every size, and each application is on one page.
func TestListsAreSortedOverAllPages(t *testing.T) {
	var lines []string
	for i := range 60 { // equal keys of each kind, and none in the order of ids
		k := i * 37 % 60
		lines = append(lines, fmt.Sprintf(`{"id":"application_1_%04d","name":"n.%d","user":"u%d","queue":"root.q%d",`+
			`"state":%q,"started":%d,"containers":%d,"memory_mb":%d,"viewers":"ann"}`, i+1, k%5, k%7, k%3,
			[]string{"RUNNING", "ACCEPTED", "FINISHED"}[k%3], 1000+k%11, k%4, 512*(k%6)))
	}
	web, warm := fedBy(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("since") != "" {
			io.WriteString(w, `{"at":"l-1"}`)
			return
		}
		io.WriteString(w, `{"at":"l-1","whole":true,"apps":[`+strings.Join(lines, ",")+`]}`)
	})
	warm()
	read := func(user, order string, limit int) (rows []apps.Row) {
		t.Helper()
		for cursor := ""; ; {
			var doc rest.AppsDoc
			fetch(t, fmt.Sprintf("%s/api/v1/apps?user.name=%s&sort=%s&limit=%d&cursor=%s",
				web.URL, user, order, limit, url.QueryEscape(cursor)), &doc)
			for _, raw := range doc.Applications {
				var row apps.Row
				if err := json.Unmarshal(raw, &row); err != nil {
					t.Fatal(err)
				}
				rows = append(rows, row)
			}
			if len(doc.Applications) > limit || doc.Matching.Running != 20 {
				t.Fatalf("a page of %d has %d: %+v", limit, len(doc.Applications), doc.Matching)
			}
			if cursor = doc.Next; cursor == "" {
				return rows
			}
		}
	}
	rank := map[string]int{"RUNNING": 0, "ACCEPTED": 1, "FINISHED": 2}
	newest := func(a, b apps.Row) int {
		return cmp.Or(cmp.Compare(b.Started, a.Started), strings.Compare(b.ID, a.ID))
	}
	orders := map[string]func(a, b apps.Row) int{
		"":           func(a, b apps.Row) int { return cmp.Compare(rank[a.State], rank[b.State]) },
		"state":      func(a, b apps.Row) int { return cmp.Compare(rank[a.State], rank[b.State]) },
		"started":    func(_, _ apps.Row) int { return 0 },
		"name":       func(a, b apps.Row) int { return cmp.Compare(a.Name, b.Name) },
		"user":       func(a, b apps.Row) int { return cmp.Compare(a.User, b.User) },
		"queue":      func(a, b apps.Row) int { return cmp.Compare(a.Queue, b.Queue) },
		"memory":     func(a, b apps.Row) int { return cmp.Compare(b.MemoryMB, a.MemoryMB) },
		"containers": func(a, b apps.Row) int { return cmp.Compare(b.Containers, a.Containers) },
	}
	ids := func(rows []apps.Row) (out []string) {
		for _, a := range rows {
			out = append(out, a.ID)
		}
		return out
	}
	for order, first := range orders {
		for _, limit := range []int{1, 7, 29, 60, 1000} {
			rows := read("ann", order, limit)
			want := slices.SortedFunc(slices.Values(rows), func(a, b apps.Row) int { return cmp.Or(first(a, b), newest(a, b)) })
			if len(rows) != 60 || !slices.Equal(ids(rows), ids(want)) {
				t.Errorf("by %q, %d on a page: %d rows, %q", order, limit, len(rows), ids(rows))
			}
		}
	}
	// The order must not reveal what a viewer may not know.
	if got, want := ids(read("mallory", "memory", 7)), ids(read("mallory", "started", 7)); !slices.Equal(got, want) {
		t.Errorf("mallory gets by memory %q, by start %q", got, want)
	}
	for query, says := range map[string]string{
		"sort=colour":                        "cannot be sorted by",
		"sort=memory&cursor=x":               "invalid cursor",
		"sort=name&cursor=*.application_1_1": "invalid cursor",
		"cursor=0.1":                         "invalid cursor",
	} {
		resp, err := http.Get(web.URL + "/api/v1/apps?" + query)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), says) {
			t.Errorf("%s: %s %s", query, resp.Status, text)
		}
	}
}
