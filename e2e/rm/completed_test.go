// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// Of the applications that had ended, a restart brings back as many as it may, those that
// ended last; Hadoop's yarn lists them.
func TestRestartKeepsAllowedCompletedApplications(t *testing.T) {
	rm := Start(t, Options{Conf: hadoop.Conf{"yarn.resourcemanager.state-store.max-completed-applications": "1"}})
	call := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+rm.Web+"/ws/v1/cluster/"+path+"?user.name=alice", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, b, err)
		}
		return string(b)
	}
	var ids []string
	for i := range 3 {
		_, id, _ := strings.Cut(call(http.MethodPost, "apps/new-application", ""), `"application-id":"`)
		id, _, _ = strings.Cut(id, `"`)
		call(http.MethodPost, "apps", fmt.Sprintf(`{"application-id":%q,"application-name":"one-%d","queue":"default",`+
			`"application-type":"TEST","unmanaged-AM":true,"am-container-spec":{},"resource":{"memory":256,"vCores":1}}`, id, i))
		ids = append(ids, id)
	}
	for _, i := range []int{0, 2, 1} { // the second ends last
		rm.Await(t, "the end of "+ids[i], func() bool {
			call(http.MethodPut, "apps/"+ids[i]+"/state", `{"state":"KILLED"}`)
			return strings.Contains(call(http.MethodGet, "apps/"+ids[i], ""), `"state":"KILLED"`)
		})
	}
	list := func() (have []string) {
		r := hadoop.Client{Conf: rm.Addresses.Conf()}.Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "ALL")
		for _, id := range ids {
			if strings.Contains(r.Stdout, id) {
				have = append(have, id)
			}
		}
		return have
	}
	if have := list(); len(have) != 3 {
		t.Fatalf("before the restart there are %v", have)
	}
	rm.Kill9()
	rm.Restart(t)
	if have := list(); len(have) != 1 || have[0] != ids[1] {
		t.Errorf("after it there are %v of %v", have, ids)
	}
}
