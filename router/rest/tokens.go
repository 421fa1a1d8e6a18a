// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/router/tokens"
)

// tokenHeader is the header with the token to renew or cancel.
const tokenHeader = "Hadoop-YARN-RM-Delegation-Token"

// tokenDocument is a delegation token in the form of YARN's web services.
type tokenDocument struct {
	Token   string `json:"token,omitempty"`
	Renewer string `json:"renewer,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Expires int64  `json:"expiration-time"`
	Most    int64  `json:"max-validity,omitempty"`
}

// issueToken issues a delegation token of the routers to the caller.
func (h *Handler) issueToken(w http.ResponseWriter, r *http.Request) {
	q, ok := tokenCall(h.conf.Tokens, w, r, "issued")
	if !ok {
		return
	}
	renewer := element(unrooted(q.body, "delegation-token"), "renewer")
	if renewer == "" {
		fail(w, r, &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "the request names no renewer", Try: `send {"renewer":"USER"}`,
		})
		return
	}
	audit.NoteOf(r.Context()).Target = renewer
	t, expires, err := h.conf.Tokens.Issue(r.Context(), q.user, renewer, realUser(r))
	if err != nil {
		fail(w, r, err)
		return
	}
	id, err := token.ParseDelegation(t.Identifier)
	if err != nil {
		fail(w, r, err)
		return
	}
	writeToken(w, r, tokenDocument{
		t.URLString(), id.Renewer, id.Owner, t.Kind, expires.UnixMilli(), id.Max.UnixMilli(),
	})
}

// realUser returns the user that acts for the caller, or the caller.
func realUser(r *http.Request) string {
	return cmp.Or(httpguard.LoginOf(r.Context()).RealUser, r.URL.Query().Get("user.name"))
}

// tokenCall reads a call about tokens; its caller must have a name. If it returns false, the call has been answered.
func tokenCall(t *tokens.Tokens, w http.ResponseWriter, r *http.Request, done string) (*request, bool) {
	q, err := read(w, r)
	if err == nil {
		err = t.Permits(httpguard.LoginOf(r.Context()).Ticket, done)
	}
	if _, ok := holder(r); ok && err == nil {
		err = &creel.Error{
			Kind: creel.ErrNotPermitted, What: "a delegation token cannot issue, renew or cancel tokens",
			Why: "the call uses one as its login", Try: "name the user by ?user.name=",
		}
	}
	if err == nil && q.user == "" {
		err = &creel.Error{
			Kind: creel.ErrNotPermitted, What: "a delegation token needs an owner",
			Try: "name the user by ?user.name=",
		}
	}
	if err != nil {
		fail(w, r, err)
		return nil, false
	}
	return q, true
}

func writeToken(w http.ResponseWriter, r *http.Request, t tokenDocument) {
	doc, err := json.Marshal(t)
	if err != nil {
		fail(w, r, err)
		return
	}
	write(w, r, http.StatusOK, rooted(r, doc, "delegation-token"))
}

// givenToken reads the token to renew or cancel. If it returns false, the call has been answered.
func givenToken(
	of *tokens.Tokens, w http.ResponseWriter, r *http.Request, done string,
) (q *request, t token.Token, ok bool) {
	if q, ok = tokenCall(of, w, r, done); !ok {
		return nil, t, false
	}
	text := r.Header.Get(tokenHeader)
	t, err := token.ParseURLString(text)
	if err != nil {
		why := "the header " + tokenHeader + " is missing"
		if text != "" {
			why = "the header " + tokenHeader + " has no valid token: " + err.Error()
		}
		fail(w, r, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the request has no delegation token",
			Why:  why,
			Try:  "send the token unchanged, in that header",
		})
		return nil, t, false
	}
	audit.NoteOf(r.Context()).Target = t.DelegationName()
	return q, t, true
}

// renewToken extends a token for its renewer.
func (h *Handler) renewToken(w http.ResponseWriter, r *http.Request) {
	q, t, ok := givenToken(h.conf.Tokens, w, r, "renewed")
	if !ok {
		return
	}
	expires, err := h.conf.Tokens.Renew(r.Context(), t, q.user)
	if err != nil {
		fail(w, r, err)
		return
	}
	writeToken(w, r, tokenDocument{Expires: expires.UnixMilli()})
}

// cancelToken ends a token at all routers.
func (h *Handler) cancelToken(w http.ResponseWriter, r *http.Request) {
	q, t, ok := givenToken(h.conf.Tokens, w, r, "cancelled")
	if !ok {
		return
	}
	if err := h.conf.Tokens.Cancel(r.Context(), t, q.user); err != nil {
		fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}
