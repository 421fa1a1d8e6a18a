// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestReadOnlyPortBelievesNoName(t *testing.T) {
	seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RawQuery) })
	for _, c := range []struct {
		method, target string
		strict         bool
		status         int
		query          string
	}{
		{http.MethodGet, "/ws?user.name=alice&a=1&DOAS=bob&b", false, 200, "a=1&b"},
		{http.MethodGet, "/ws?user%2Ename=alice", false, 200, ""},
		{http.MethodGet, "/ws?User.Name=alice&limit=2", false, 200, "limit=2"},
		{http.MethodHead, "/ws", false, 200, ""},
		{http.MethodPut, "/ws/v1/cluster/apps/a/state", false, 403, ""},
		{http.MethodPost, "/ws?user.name=alice", false, 403, ""},
		{http.MethodDelete, "/ws", false, 403, ""},
		{http.MethodGet, "/logLevel?log=x&level=DEBUG", false, 403, ""},
		{http.MethodGet, "/LogLevel/?level=DEBUG", false, 403, ""},
		{http.MethodGet, "/logLevel?log=x", false, 200, "log=x"},
		{http.MethodGet, "/ws?user.name=alice", true, 403, ""},
		{http.MethodGet, "/livez", true, 200, ""},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.AddCookie(&http.Cookie{Name: cookieName, Value: "u=alice&p=alice&t=simple&e=9999999999999"})
		w := httptest.NewRecorder()
		readOnly(seen, c.strict).ServeHTTP(w, r)
		if w.Code != c.status || w.Code == 200 && w.Body.String() != c.query {
			t.Errorf("%s %s: %d %q", c.method, c.target, w.Code, w.Body)
		}
		if cookie := w.Header().Get("Set-Cookie"); cookie != "" {
			t.Errorf("%s sets %s", c.target, cookie)
		}
	}
}
