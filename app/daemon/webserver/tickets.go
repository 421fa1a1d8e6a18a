// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/spnego"
)

// Tickets is a login by Kerberos, or by a delegation token that a caller with a ticket got.
type Tickets interface {
	// User returns the user of a request. If it has none, User has answered the request.
	User(w http.ResponseWriter, r *http.Request) (who httpguard.Login, ok bool)
}

// byTicket serves requests as the users that their logins prove. No user.name of a request is believed. Beside a ticket
// doAs names another user: c.ActFor decides whether the caller may act for it, or else the handler, which then gets
// doAs. A delegation token names its user alone, as by RPC. Requests for health and reads of the open paths need no
// login, and have no name.
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
		named := []string{"user.name", spnego.TokenParameter}
		if !who.Ticket {
			named = append(named, "doas")
		}
		raw, err := shortNames(query.Without(r.URL.RawQuery, named...), c.Names)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if c.ActFor != nil {
			if who, err = c.ActFor.apply(who, raw, r.RemoteAddr); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			raw = query.Without(raw, "doas")
		}
		r = r.Clone(httpguard.WithLogin(r.Context(), who))
		spnego.HideToken(r.Header)
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

// apply returns the login of the user that a caller acts for by doAs.
func (f ActFor) apply(who httpguard.Login, raw, remote string) (httpguard.Login, error) {
	as := ""
	for name, value := range query.Pairs(raw) {
		if strings.EqualFold(name, "doAs") {
			as = value
			break
		}
	}
	if as == "" || as == who.User {
		return who, nil
	}
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return who, fmt.Errorf("the address %s is malformed", remote)
	}
	if err := f(who.User, as, at.Addr().Unmap()); err != nil {
		return who, err
	}
	return httpguard.Login{User: as, RealUser: who.User, Ticket: true}, nil
}
