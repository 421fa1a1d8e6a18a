// SPDX-License-Identifier: Apache-2.0

// Package allow is what the servers of routers and ResourceManagers permit: it answers
// OPTIONS (what a path can do), refuses names of hosts that are not ours, tells which
// pages of other servers may read, and which machines a list has.
package allow

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// Options answers OPTIONS, by which hadoop-auth's clients begin (AuthenticatedURL:
// yarn schedulerconf, yarn logs -am, yarn top): 200, and the methods that the
// path has in Allow. It goes among the middleware of the router whose routes it
// is given.
func Options(routes chi.Routes) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodOptions {
				next.ServeHTTP(w, r)
				return
			}
			path := chi.RouteContext(r.Context()).RoutePath
			if path == "" {
				path = "/"
			}
			allowed := []string{http.MethodOptions}
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
				if routes.Match(chi.NewRouteContext(), method, path) {
					if allowed = append(allowed, method); method == http.MethodGet {
						allowed = append(allowed, http.MethodHead)
					}
				}
			}
			w.Header().Set("Allow", strings.Join(allowed, ","))
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusOK)
		})
	}
}

// Reading serves a page that is only read: GET and HEAD, and what OPTIONS asks. net/http
// keeps a HEAD's body from the client.
func Reading(page http.Handler) http.Handler {
	const allowed = "OPTIONS,GET,HEAD"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			page.ServeHTTP(w, r)
		case http.MethodOptions:
			w.Header().Set("Allow", allowed)
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusOK)
		default:
			w.Header().Set("Allow", allowed)
			http.Error(w, "this page is read by GET", http.StatusMethodNotAllowed)
		}
	})
}
