// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/username"
)

// cookieName is the cookie of Hadoop's simple authentication. It identifies a client that has sent user.name once.
// Some clients, such as yarn-api-client, require it.
const cookieName = "hadoop.auth"

// cookieAge is Hadoop's hadoop.http.authentication.token.validity default.
const cookieAge = 10 * time.Hour

// identify adds simple authentication to a handler. A user.name in the query sets the cookie. A request with only the
// cookie is handled as if it had the user.name, so that members see it too, through any router. The cookie proves no
// more than user.name does, so it has no signature. Requests with neither go to anonymous, except those for health.
func identify(next, anonymous http.Handler, names *username.Rules) http.Handler {
	var last atomic.Pointer[setCookie]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		short, err := shortNames(r.URL.RawQuery, names)
		if err == nil && short != r.URL.RawQuery {
			r = r.Clone(r.Context())
			r.URL.RawQuery = short
		}
		name, cookie := query.First(r.URL.RawQuery, "user.name"), ""
		if name == "" && err == nil {
			cookie, err = names.Short(cookieUser(r))
			name = cookie
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(name) > 256 {
			const why = "user.name is invalid: it is longer than 256 bytes or has control characters"
			http.Error(w, why, http.StatusBadRequest)
			return
		}
		switch {
		case name == "" && r.URL.Path != "/livez" && r.URL.Path != "/readyz":
			anonymous.ServeHTTP(w, r)
			return
		case cookie != "":
			r = r.Clone(r.Context())
			if r.URL.RawQuery != "" {
				r.URL.RawQuery += "&"
			}
			r.URL.RawQuery += "user.name=" + url.QueryEscape(cookie)
		case name != "":
			now := time.Now()
			c := last.Load()
			if c == nil || c.name != name || now.Unix() != c.second {
				c = newCookie(name, now, r.TLS != nil)
				last.Store(c)
			}
			w.Header()["Set-Cookie"] = c.header
		}
		next.ServeHTTP(w, r)
	})
}

// shortNames returns a query in which user.name and doAs have short user names.
func shortNames(raw string, names *username.Rules) (string, error) {
	long := false
	for name, value := range query.Pairs(raw) {
		long = long || namesUser(name) && strings.ContainsAny(value, "@/")
	}
	if !long {
		return raw, nil
	}
	var pairs []string
	for pair := range strings.SplitSeq(raw, "&") {
		for name, value := range query.Pairs(pair) {
			if !namesUser(name) {
				continue
			}
			short, err := names.Short(value)
			if err != nil {
				return "", err
			}
			pair = name + "=" + url.QueryEscape(short)
		}
		pairs = append(pairs, pair)
	}
	return strings.Join(pairs, "&"), nil
}

func namesUser(parameter string) bool {
	return parameter == "user.name" || strings.EqualFold(parameter, "doAs")
}

// anonymous serves requests without a user name. If anonymous requests are disallowed, those with another login go to
// its handler, which rejects an invalid one.
func anonymous(next http.Handler, c Config) http.Handler {
	switch {
	case !c.RefuseAnonymous:
		return next
	case c.Login.Handler == nil:
		return http.HandlerFunc(DisallowAnonymous)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.Login.Shown(r) {
			c.Login.Handler.ServeHTTP(w, r)
			return
		}
		DisallowAnonymous(w, r)
	})
}

// DisallowAnonymous rejects a request without a user name, as Hadoop's web servers do.
func DisallowAnonymous(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("WWW-Authenticate", "PseudoAuth")
	http.Error(w, "Anonymous requests are disallowed: add ?user.name=", http.StatusForbidden)
}

// setCookie is the header that stores a client's name in a cookie. Frequent requests with a name get the same cookie
// within a second.
type setCookie struct {
	name   string
	second int64
	header []string // immutable
}

func newCookie(name string, now time.Time, secure bool) *setCookie {
	expires := now.Add(cookieAge)
	escaped := url.QueryEscape(name)
	value := "u=" + escaped + "&p=" + escaped + "&t=simple&e=" + strconv.FormatInt(expires.UnixMilli(), 10)
	text := cookieName + `="` + value + `"; Path=/; HttpOnly; Expires=` + expires.UTC().Format(http.TimeFormat)
	if secure {
		text += "; Secure"
	}
	return &setCookie{name: name, second: now.Unix(), header: []string{text}}
}

// cookieUser returns the user of an unexpired cookie, "" for none.
func cookieUser(r *http.Request) string {
	if len(r.Header["Cookie"]) == 0 {
		return ""
	}
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	fields, err := url.ParseQuery(strings.Trim(c.Value, `"`))
	if err != nil || fields.Get("t") != "simple" {
		return ""
	}
	if expires, err := strconv.ParseInt(fields.Get("e"), 10, 64); err != nil || time.Now().UnixMilli() >= expires {
		return ""
	}
	return fields.Get("u")
}
