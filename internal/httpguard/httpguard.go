// SPDX-License-Identifier: Apache-2.0

// Package httpguard is HTTP middleware that guards the web servers of routers and ResourceManagers. It answers OPTIONS,
// rejects foreign Host headers, sends CORS headers, and matches client addresses against lists of machines.
package httpguard

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// Options answers OPTIONS requests with 200 and the path's methods in Allow. Clients of hadoop-auth (AuthenticatedURL:
// yarn schedulerconf, yarn logs -am, yarn top) send one first. Install it as middleware of the router that it receives.
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

// Reading serves a read-only page: GET, HEAD and OPTIONS. net/http drops the body of a HEAD response.
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
