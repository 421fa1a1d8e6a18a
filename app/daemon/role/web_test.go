// SPDX-License-Identifier: Apache-2.0

package role

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/servlets"
)

// Every key has one value: what is set, else creel's default, else Hadoop's.
func TestConfHasHadoopsDefaults(t *testing.T) {
	list := properties(minimal(t, "dfs.ha.fencing.methods=shell", "yarn.cluster.max-application-priority=7"))
	find := func(name string) (found []servlets.Property) {
		for _, p := range list {
			if p.Name == name {
				found = append(found, p)
			}
		}
		return found
	}
	for name, want := range map[string]string{
		"dfs.ha.fencing.methods": "shell", "yarn.cluster.max-application-priority": "7",
		"yarn.resourcemanager.am.max-attempts": "2", "adl.http.timeout": "-1",
	} {
		if found := find(name); len(found) != 1 || found[0].Value != want {
			t.Errorf("%s is %+v, want %s", name, found, want)
		}
	}
	if found := find("no.such.key"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if !slices.IsSortedFunc(list, func(a, b servlets.Property) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the keys are not in order")
	}
}

func TestRMBrowsersNeedHeaderIfConfigured(t *testing.T) {
	const key = "yarn.resourcemanager.webapp.rest-csrf."
	for define, want := range map[string]int{key + "enabled=false": 204, key + "enabled=true": 400} {
		c, err := RMSettings(minimal(t, define, key+"custom-header=X-Ours"), nil)
		if err != nil {
			t.Fatal(err)
		}
		h := c.WebServer.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
		ask := func(header string) int {
			r := httptest.NewRequest("POST", "http://rm.test/ws/v1/cluster/apps", nil)
			r.Header.Set("User-Agent", "Mozilla/5.0")
			r.Header.Set(header, "x")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		if got := ask("X-XSRF-Header"); got != want {
			t.Errorf("%s: %d without the header", define, got)
		}
		if got := ask("X-Ours"); got != 204 {
			t.Errorf("%s: %d with the header", define, got)
		}
	}
}
