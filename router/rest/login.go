// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
)

// A caller identifies itself by user.name, or by a delegation token of the routers in a header or in the query, as
// Hadoop's clients send it. A caller with a token is the token's owner. As by RPC, other parameters such as doAs do
// not change that. Members do not have the key of the token. So the call goes to them with the owner's name and
// without the token.
const (
	loginHeader    = "X-Hadoop-Delegation-Token"
	loginParameter = "delegation"
)

// loginTime bounds the lookup of a token in the store while its holder waits.
const loginTime = 5 * time.Second

// refuser writes a login error in the format of the called path.
type refuser func(w http.ResponseWriter, r *http.Request, err error)

// login authenticates callers by token.
func (h *Handler) login(refused refuser) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, shown := shownToken(r)
			if !shown {
				next.ServeHTTP(w, r)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), loginTime)
			id, err := h.conf.Tokens.Login(ctx, text)
			cancel()
			r = ofHolder(r, id)
			serve := next
			if err != nil {
				refuse := func(w http.ResponseWriter, r *http.Request) { refused(w, r, err) }
				serve = h.audit(http.HandlerFunc(refuse))
			}
			serve.ServeHTTP(w, r)
		})
	}
}

// ShowsToken reports whether a call has a delegation token. All paths of Mount accept or reject such a call by its
// token.
func ShowsToken(r *http.Request) bool {
	_, shown := shownToken(r)
	return shown
}

// shownToken returns the token in a call.
func shownToken(r *http.Request) (text string, shown bool) {
	values := r.Header[loginHeader]
	if len(values) == 0 {
		values = r.URL.Query()[loginParameter]
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// holderKey is the context key of the caller's token.Delegation.
type holderKey struct{}

// holder returns the caller's token, false if the caller did not log in by token.
func holder(r *http.Request) (token.Delegation, bool) {
	id, ok := r.Context().Value(holderKey{}).(token.Delegation)
	return id, ok
}

// ofHolder returns the call with the token's owner as its user, without the token. If the token has no owner, the
// call has no user and is rejected.
func ofHolder(r *http.Request, id token.Delegation) *http.Request {
	out := r.Clone(context.WithValue(r.Context(), holderKey{}, id))
	out.Header.Del(loginHeader)
	out.URL.RawQuery = anonymous(r.URL.RawQuery)
	if id.Owner != "" {
		who := url.Values{"user.name": {id.Owner}}.Encode()
		out.URL.RawQuery = strings.TrimPrefix(out.URL.RawQuery+"&"+who, "&")
	}
	out.RequestURI = out.URL.RequestURI()
	return out
}

// anonymous returns a query without the parameters that identify the caller.
func anonymous(query string) string {
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if pair != "" && name != loginParameter && name != "user.name" && !strings.EqualFold(name, "doAs") {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// failLogin rejects a token as Hadoop's web servers do.
func failLogin(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, creel.ErrInvalidToken) {
		fail(w, r, err)
		return
	}
	refuse(w, r, http.StatusForbidden,
		"org.apache.hadoop.security.authentication.client.AuthenticationException", err.Error())
}

// problemLogin rejects a token in the form of the native API.
func problemLogin(w http.ResponseWriter, _ *http.Request, err error) {
	problemOf(w, err)
}
