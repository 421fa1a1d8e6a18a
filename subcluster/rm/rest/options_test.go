// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"testing"
)

// hadoop-auth's clients (yarn schedulerconf, yarn logs -am, yarn top) begin with
// OPTIONS and go on only after a 200; monitors ask with HEAD.
func TestOptionsAndHeadAreAnswered(t *testing.T) {
	c := start(t, nil)
	for path, want := range map[string]string{
		"/ws/v1/cluster/info":           "OPTIONS,GET,HEAD",
		"/ws/v1/cluster/apps":           "OPTIONS,GET,HEAD,POST",
		"/ws/v1/cluster/scheduler-conf": "OPTIONS,GET,HEAD,PUT",
	} {
		for method, allow := range map[string]string{http.MethodOptions: want, http.MethodHead: ""} {
			req, err := http.NewRequestWithContext(t.Context(), method, c.web.URL+path+"?user.name=alice", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			refused := path == "/ws/v1/cluster/scheduler-conf" && method == http.MethodHead // not enabled: 400
			if resp.StatusCode != http.StatusOK && !refused || resp.Header.Get("Allow") != allow {
				t.Errorf("%s %s: %s, Allow %q, want 200 and %q", method, path, resp.Status, resp.Header.Get("Allow"), allow)
			}
		}
	}
}
