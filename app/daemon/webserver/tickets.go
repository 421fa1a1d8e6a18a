// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/creelrm/creel/internal/query"
)

// Tickets is a login by Kerberos.
type Tickets interface {
	// User returns the user of a request. If it has none, User has answered the request.
	User(w http.ResponseWriter, r *http.Request) (user string, ok bool)
}

// byTicket serves requests as the users that their logins prove. No user.name of a request is believed. doAs stays: the
// handler decides whether the user may act for others. Requests for health and reads of the open paths need no login,
// and have no name.
func byTicket(next http.Handler, c Config) http.Handler {
	open := readOnly(next, false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; path == "/livez" || path == "/readyz" || slices.Contains(c.Open, path) {
			open.ServeHTTP(w, r)
			return
		}
		user, ok := c.Tickets.User(w, r)
		if !ok {
			return
		}
		raw, err := shortNames(without(r.URL.RawQuery, "user.name"), c.Names)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if raw != "" {
			raw += "&"
		}
		raw += "user.name=" + url.QueryEscape(user)
		if query.First(raw, "user.name") != user { // readers drop the whole query
			http.Error(w, "The query has too many parameters.", http.StatusBadRequest)
			return
		}
		r = r.Clone(r.Context())
		r.URL.RawQuery = raw
		next.ServeHTTP(w, r)
	})
}
