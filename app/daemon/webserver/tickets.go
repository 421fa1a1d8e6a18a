// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/spnego"
)

// Tickets is a login by Kerberos, or by a delegation token that a caller with a ticket got.
type Tickets interface {
	// User returns the user of a request. If it has none, User has answered the request.
	User(w http.ResponseWriter, r *http.Request) (who httpguard.Login, ok bool)
}

// byTicket serves requests as the users that their logins prove. No user.name of a request is believed. doAs stays
// beside a ticket: the handler decides whether the user may act for others. A delegation token names its user alone, as
// by RPC. Requests for health and reads of the open paths need no login, and have no name.
func byTicket(next http.Handler, c Config) http.Handler {
	open := readOnly(next, false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; path == "/livez" || path == "/readyz" || slices.Contains(c.Open, path) {
			open.ServeHTTP(w, r)
			return
		}
		who, ok := c.Tickets.User(w, r)
		if !ok {
			return
		}
		r = r.Clone(httpguard.WithLogin(r.Context(), who))
		spnego.HideToken(r.Header)
		named := []string{"user.name", spnego.TokenParameter}
		if !who.Ticket {
			named = append(named, "doas")
		}
		raw, err := shortNames(without(r.URL.RawQuery, named...), c.Names)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if raw != "" {
			raw += "&"
		}
		raw += "user.name=" + url.QueryEscape(who.User)
		if query.First(raw, "user.name") != who.User { // readers drop the whole query
			http.Error(w, "The query has too many parameters.", http.StatusBadRequest)
			return
		}
		r.URL.RawQuery = raw
		next.ServeHTTP(w, r)
	})
}
