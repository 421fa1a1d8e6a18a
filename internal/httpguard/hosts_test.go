// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/creelrm/creel/internal/httpguard"
)

// Over loopback a page of another site cannot read our answers by having its
// own name resolve to us.
func TestAnotherNameForLoopbackIsRefused(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	try := func(host string, names ...string) int {
		s := httptest.NewServer(httpguard.KnownHosts(names)(ok))
		defer s.Close()
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, host := range []string{"127.0.0.1:8088", "localhost", "localhost:8088", "LOCALHOST.", "[::1]:8088", "10.1.2.3", "a.localhost"} {
		if got := try(host); got != 204 {
			t.Errorf("%s: %d", host, got)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:8088", "127.0.0.1.evil.example", "localhost.evil.example"} {
		if got := try(host, "router.example"); got != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d", host, got)
		}
	}
	if try("Router.Example:8088", "router.example") != 204 || try("evil.example", "*") != 204 {
		t.Error("a name that is allowed is refused")
	}
}
