// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Allowed origins, methods and headers.
func TestOtherOriginsReadOnlyAllowedPages(t *testing.T) {
	origins := []string{"http://one:80", "https://*.example.org", "regex:http://h[0-9]+"}
	for _, tc := range []struct {
		origin, method, headers string
		all, want               bool
	}{
		{origin: "http://one:80", want: true},
		{origin: "http://one:81"},
		{origin: "https://a.example.org", want: true},
		{origin: "https://a.example.org.evil"},
		{origin: "https://axexample.org"},
		{origin: "http://h12", want: true},
		{origin: "http://hx"},
		{origin: "http://hx", all: true, want: true},
		{origin: "http://one:80", method: "POST", want: true},
		{origin: "http://one:80", method: "DELETE"},
		{origin: "http://one:80", headers: "content-type, Accept", want: true},
		{origin: "http://one:80", headers: "X-Other"},
		{},
	} {
		list := origins
		if tc.all {
			list = append(list, "*")
		}
		o, err := NewOrigins(list, []string{"GET", "POST"}, []string{"Content-Type", "Accept"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		h := o.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for name, value := range map[string]string{
			"Origin": tc.origin, "Access-Control-Request-Method": tc.method, "Access-Control-Request-Headers": tc.headers,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Origin"); (got != "") != tc.want || tc.want && got != tc.origin ||
			w.Code != http.StatusNoContent {
			t.Errorf("%+v: %q %d", tc, got, w.Code)
		}
		if tc.want && w.Header().Get("Access-Control-Max-Age") != "60" {
			t.Errorf("%+v: %v", tc, w.Header())
		}
	}
	if _, err := NewOrigins([]string{"regex:("}, nil, nil, 0); err == nil || err.Error() != `"(" is no regular expression` {
		t.Error(err)
	}
}
