// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"net/http"

	"github.com/creelrm/creel/internal/query"
)

// ErrNoUser is the error of a request for an AM's page that names no user. With Kerberos it would be served as this
// daemon's own, which may see all applications.
var ErrNoUser = errors.New("the request has no user")

// Pages returns the transport of requests for AMs' pages at the member's web proxy, over another one. With Kerberos
// this daemon logs in and acts for the user in user.name, as Web does. It uses the cookie that Web's calls got, and
// keeps none of its own: an AM, which is any user's program, could set it.
func (m *Member) Pages(base http.RoundTripper) http.RoundTripper {
	if m.pool.login.Ticket == nil {
		return base
	}
	acting, _ := m.pool.login.Web(&withCookies{base, m.pool.http.Jar})
	return &amPages{m, acting}
}

// amPages logs in before requests that cannot be sent again.
type amPages struct {
	member *Member
	acting http.RoundTripper
}

// RoundTrip is http.RoundTripper's.
func (p *amPages) RoundTrip(r *http.Request) (*http.Response, error) {
	if query.First(r.URL.RawQuery, "user.name") == "" {
		return nil, ErrNoUser
	}
	if r.Body != nil && r.Body != http.NoBody {
		// The body is read once, so the login must be complete before.
		_, _, err := p.member.Web(r.Context(), Read, http.MethodGet, "/ws/v1/cluster/userinfo", "", nil, nil)
		if err != nil {
			return nil, err
		}
	}
	return p.acting.RoundTrip(r)
}

// withCookies sends the cookies of a jar, and stores none.
type withCookies struct {
	base http.RoundTripper
	jar  http.CookieJar
}

// RoundTrip is http.RoundTripper's.
func (w *withCookies) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	for _, c := range w.jar.Cookies(r.URL) {
		out.AddCookie(c)
	}
	return w.base.RoundTrip(out)
}
