// SPDX-License-Identifier: Apache-2.0

package spnego

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/httpguard"
)

// Config configures the login.
type Config struct {
	Acceptor *gssapi.Acceptor // of the principal HTTP/host
	// Short returns the short name of a principal, by hadoop.security.auth_to_local.
	Short  func(principal string) (string, error)
	Signer *Signer
	// Tokens verifies the text of a delegation token and returns its owner; nil if tokens are no login.
	Tokens func(text string) (httpguard.Login, error)
	Valid  time.Duration // of a cookie
	Domain string        // of a cookie; "": the host that set it
	Secure bool          // the cookie is for TLS only
	Now    func() time.Time
	Random io.Reader
}

// Login finds the users of requests.
type Login struct{ Config }

// New makes a login.
func New(c Config) *Login { return &Login{c} }

// User returns the user of a request. If it has none, User has answered the request.
//
// A delegation token is decisive: beside it, neither a cookie nor a ticket is read. The answer is 401 for a request
// without a login, and 403 for a ticket or a token that is not accepted, as Hadoop answers.
func (l *Login) User(w http.ResponseWriter, r *http.Request) (who httpguard.Login, ok bool) {
	now := l.Now()
	if text, shown := shownToken(r); shown && l.Tokens != nil {
		return l.byToken(w, text)
	}
	for _, c := range r.CookiesNamed(CookieName) {
		if user := l.Signer.User(c.Value, now); user != "" {
			return httpguard.Login{User: user, Ticket: true}, true
		}
	}
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Negotiate") {
		l.ask(w, http.StatusUnauthorized, "Authentication required")
		return who, false
	}
	user, principal, reply, err := l.accept(strings.TrimSpace(text), now)
	if err != nil {
		l.ask(w, http.StatusForbidden, "The Kerberos login failed: "+err.Error())
		return who, false
	}
	answer := "Negotiate"
	if len(reply) > 0 {
		answer += " " + base64.StdEncoding.EncodeToString(reply)
	}
	w.Header().Set("WWW-Authenticate", answer)
	expires := now.Add(l.Valid)
	l.set(w, l.Signer.Sign(user, principal, expires), expires)
	return httpguard.Login{User: user, Ticket: true}, true
}

// accept verifies a token of the header Authorization.
func (l *Login) accept(text string, now time.Time) (user, principal string, reply []byte, err error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", "", nil, errMalformed
	}
	token, wrapped, err := mechToken(b)
	if err != nil {
		return "", "", nil, err
	}
	context, reply, err := l.Acceptor.Accept(token, now, l.Random)
	if err != nil {
		return "", "", nil, err
	}
	principal = context.Client.String()
	if user, err = l.Short(principal); err != nil {
		return "", "", nil, err
	}
	if !fits(user) || !fits(principal) {
		return "", "", nil, fmt.Errorf("the name %q or %q has characters that no web client's may have", user, principal)
	}
	reply, err = completed(reply, wrapped)
	return user, principal, reply, err
}

// ask answers a request without a user. The cookie is removed, so that no browser sends a wrong one again.
func (l *Login) ask(w http.ResponseWriter, status int, text string) {
	w.Header().Set("WWW-Authenticate", "Negotiate")
	l.set(w, "", time.Unix(0, 0))
	http.Error(w, text, status)
}

// set sets the cookie. Its value stands in quotes, since it has characters that a bare one may not have.
func (l *Login) set(w http.ResponseWriter, value string, expires time.Time) {
	text := CookieName + `=`
	if value != "" {
		text += `"` + value + `"`
	}
	text += "; Path=/"
	if l.Domain != "" {
		text += "; Domain=" + l.Domain
	}
	text += "; Expires=" + expires.UTC().Format(http.TimeFormat) + "; HttpOnly; SameSite=Lax"
	if l.Secure {
		text += "; Secure"
	}
	w.Header().Add("Set-Cookie", text)
}
