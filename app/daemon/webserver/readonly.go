// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"net/http"
	"strings"

	"github.com/creelrm/creel/internal/query"
)

// cannotLogIn is the reason why a port without a way to log in rejects changes.
const cannotLogIn = "This web port has no login yet, so it serves reads only: use `yarn` with a Kerberos ticket (kinit) " +
	"for changes."

// readOnly serves reads without a caller's name, and rejects changes. No user name of a request is believed: not
// user.name, nor doAs, nor the cookie of identify.
func readOnly(next http.Handler, refuseAnonymous bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		health := r.URL.Path == "/livez" || r.URL.Path == "/readyz"
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		switch {
		case refuseAnonymous && !health:
			http.Error(w, "Anonymous requests are disallowed, and this web port has no login yet.", http.StatusForbidden)
			return
		case !reads, setsLogLevel(r):
			http.Error(w, cannotLogIn, http.StatusForbidden)
			return
		}
		r = r.Clone(r.Context())
		r.URL.RawQuery = nameless(r.URL.RawQuery)
		next.ServeHTTP(w, r)
	})
}

// setsLogLevel recognizes the only change by GET: yarn daemonlog -setlevel.
func setsLogLevel(r *http.Request) bool {
	return strings.EqualFold(strings.Trim(r.URL.Path, "/"), "logLevel") && query.First(r.URL.RawQuery, "level") != ""
}

// nameless returns a query without user.name and doAs.
func nameless(raw string) string { return query.Without(raw, "user.name", "doas") }
