// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// cookieName is the cookie of Hadoop's simple authentication: a client that
// named itself once by user.name is known by it afterwards, and some (such as
// yarn-api-client) do not go on without it.
const cookieName = "hadoop.auth"

// cookieAge is Hadoop's hadoop.http.authentication.token.validity default.
const cookieAge = 10 * time.Hour

// identify is simple authentication around a web door. A user.name in the
// query sets the cookie; a request with only the cookie is as if it had the
// user.name, so that members hear it too, through any router. The cookie
// proves no more than user.name does, which is why it carries no signature.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, cookie := r.URL.Query().Get("user.name"), ""
		if name == "" {
			cookie = cookieUser(r)
			name = cookie
		}
		if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(name) > 256 {
			http.Error(w, "user.name is no user's name: it is longer than 256 bytes or has control characters", http.StatusBadRequest)
			return
		}
		switch {
		case cookie != "":
			r = r.Clone(r.Context())
			if r.URL.RawQuery != "" {
				r.URL.RawQuery += "&"
			}
			r.URL.RawQuery += "user.name=" + url.QueryEscape(cookie)
		case name != "":
			expires := time.Now().Add(cookieAge)
			value := "u=" + url.QueryEscape(name) + "&p=" + url.QueryEscape(name) + "&t=simple&e=" + strconv.FormatInt(expires.UnixMilli(), 10)
			w.Header().Add("Set-Cookie", cookieName+`="`+value+`"; Path=/; HttpOnly; Expires=`+expires.UTC().Format(http.TimeFormat))
		}
		next.ServeHTTP(w, r)
	})
}

// cookieUser is the user of a cookie that has not expired, "" for none.
func cookieUser(r *http.Request) string {
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
