// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/httpguard"
)

func TestWritesOfOtherSitesAreRejected(t *testing.T) {
	friend, err := httpguard.NewOrigins([]string{"https://friend.example"}, []string{"POST"}, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, c := range []struct {
		method  string
		headers map[string]string
		allowed *httpguard.Origins
		want    int
	}{
		{"POST", nil, nil, 204}, // a program
		{"DELETE", nil, nil, 204},
		{"POST", map[string]string{"Sec-Fetch-Site": "same-origin"}, nil, 204},
		{"POST", map[string]string{"Sec-Fetch-Site": "none"}, nil, 204},
		{"POST", map[string]string{"Sec-Fetch-Site": "cross-site"}, nil, 403},
		{"PUT", map[string]string{"Sec-Fetch-Site": "same-site"}, nil, 403},
		{"POST", map[string]string{"Origin": "http://rm.example:8088"}, nil, 204},
		{"POST", map[string]string{"Origin": "http://evil.example"}, nil, 403},
		{"DELETE", map[string]string{"Origin": "null"}, nil, 403},
		{"GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, nil, 204},
		{"POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://friend.example"}, friend, 204},
		{"POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, friend, 403},
		{"POST", map[string]string{"Sec-Fetch-Site": "cross-site"}, friend, 403},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "http://rm.example:8088/ws/v1/cluster/apps", nil)
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		httpguard.SameSite(c.allowed, ok).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s %v: %d, want %d", c.method, c.headers, w.Code, c.want)
		}
	}
	get := httptest.NewRequestWithContext(t.Context(), "GET", "http://rm.example:8088/logLevel", nil)
	if httpguard.FromOtherSite(get) {
		t.Error("a program's GET is taken for one of another site")
	}
	get.Header.Set("Sec-Fetch-Site", "cross-site")
	if !httpguard.FromOtherSite(get) {
		t.Error("a GET of another site's page is taken for our own")
	}
}
