// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/creelrm/creel/internal/httpguard"
)

func TestBrowsersNeedHeaderForChanges(t *testing.T) {
	h, err := httpguard.NewRequiredHeader("X-XSRF-Header", []string{"GET", "OPTIONS", "HEAD"},
		[]string{"^Mozilla.*", "^Opera.*"})
	if err != nil {
		t.Fatal(err)
	}
	served := h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, c := range []struct {
		method, agent, site, header string
		want                        int
	}{
		{"POST", "Mozilla/5.0 (X11)", "", "", 400},
		{"DELETE", "Opera/9.80", "", "", 400},
		{"PUT", "Mozilla/5.0", "cross-site", "", 400},
		{"PUT", "Mozilla/5.0", "same-site", "", 400},
		{"PUT", "Mozilla/5.0", "", "any", 204},
		{"PUT", "Mozilla/5.0", "same-origin", "", 204}, // a page of this server
		{"GET", "Mozilla/5.0", "", "", 204},
		{"PUT", "curl/8.0 Mozilla", "", "", 204},
		{"PUT", "", "", "", 204},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "http://rm.example:8088/ws/v1/cluster/apps", nil)
		for name, value := range map[string]string{
			"User-Agent": c.agent, "Sec-Fetch-Site": c.site, "x-xsrf-header": c.header,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
	if _, err := httpguard.NewRequiredHeader("X", nil, []string{"("}); err == nil {
		t.Error("an invalid expression is accepted")
	}
}
