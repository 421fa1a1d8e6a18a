// SPDX-License-Identifier: Apache-2.0

package dash_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
)

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// submit submits an unmanaged application in alice's name.
func submit(t *testing.T, f *routertest.Federation, name string) string {
	t.Helper()
	alice := f.As(f.Routers[0], "alice")
	made, err := alice.GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	id := pb.ToApplicationID(made.GetApplicationId())
	_, err = alice.SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: routertest.Context(id, name),
	})
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// Each page is rendered whole, loads nothing from elsewhere and lets no script stand
// in it; what others wrote is text.
func TestEveryPageIsRenderedAndGuarded(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	web := "http://" + f.Routers[0].Web
	const name = `<script>alert(1)</script>"'`
	id := submit(t, f, name)
	for path, says := range map[string]string{
		"/": "All 2 members are well", "/apps": "Running first", "/apps?group=queue&state=waiting": "By queue",
		"/apps/" + id + "?user.name=alice": "Policy <b>", "/queues": "root.default",
		"/queues?queue=root.default": "Its applications",
		"/members":                   "sc-a", "/members/sc-a": "Nodes", "/policies": "Queues without",
		"/policies/root.default": "No document holds",
		"/policies/*":            "Policy of *", "/rebalancer": "No rebalancer", "/operations": "Readiness",
	} {
		resp, body := get(t, web+path)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, says) ||
			!strings.HasSuffix(strings.TrimSpace(body), "</html>") {
			t.Errorf("%s: %s, without %q in %d bytes:\n%s", path, resp.Status, says, len(body), body)
		}
		if csp := resp.Header.Get(
			"Content-Security-Policy",
		); !strings.Contains(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if strings.Contains(body, "<script>") || strings.Contains(body, "style=") ||
			strings.Contains(body, `="http`) && !strings.Contains(path, id) {
			t.Errorf("%s has a script, a style or a link to elsewhere in it:\n%s", path, body)
		}
		if strings.Contains(path, id) && !strings.Contains(body, "&lt;script&gt;alert(1)&lt;/script&gt;") {
			t.Errorf("%s does not show the name as text", path)
		}
	}
	for path, want := range map[string]int{
		"/members/nobody": http.StatusNotFound, "/apps/x": http.StatusBadRequest,
		"/apps/application_1_0001": http.StatusNotFound,
		"/apps?cursor=x":           http.StatusBadRequest, "/dash/stream?at=http://x/": http.StatusBadRequest,
	} {
		if resp, body := get(t, web+path); resp.StatusCode != want {
			t.Errorf("%s: %s, want %d:\n%s", path, resp.Status, want, body)
		}
	}
	for from, to := range map[string]string{
		"/cluster": "/", "/cluster/app/" + id: "/apps/" + id, "/cluster/apps/RUNNING": "/apps", "/cluster/nodes": "/members",
	} {
		if resp, _ := get(t, web+from); resp.Request.URL.Path != to || resp.StatusCode != http.StatusOK {
			t.Errorf("%s leads to %s, %s", from, resp.Request.URL, resp.Status)
		}
	}
}

// A stream sends the parts of a page that change, and nothing of who may not see it.
func TestAStreamSendsWhatChanged(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	resp, err := http.Get("http://" + f.Routers[0].Web + "/dash/stream?at=" + "%2Fapps%3Fq%3Dhello")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := submit(t, f, "hello")
	var heard strings.Builder
	buffer := make([]byte, 64<<10)
	for !strings.Contains(heard.String(), id) {
		n, err := resp.Body.Read(buffer)
		if err != nil {
			t.Fatalf("%v after\n%s", err, heard.String())
		}
		heard.Write(buffer[:n])
	}
	if !strings.Contains(heard.String(), `event: part`) || !strings.Contains(heard.String(), `"part":"apps"`) {
		t.Errorf("heard\n%s", heard.String())
	}
}
