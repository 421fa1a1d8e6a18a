// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/xml"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/token"
)

// tokenHeader is the header with the token to renew or cancel.
const tokenHeader = "Hadoop-YARN-RM-Delegation-Token"

// notByTicket is YARN's answer to callers without a ticket.
const notByTicket = "Delegation token operations can only be carried out on a Kerberos authenticated channel. " +
	"Expected auth type is kerberos, got type null"

// tokensAPI issues, renews and cancels delegation tokens, which are those of RPC.
type tokensAPI struct{ h *Handler }

func (a tokensAPI) mount(r chi.Router) {
	r.Post("/delegation-token", a.byTicket(a.issue))
	r.Post("/delegation-token/expiration", a.byTicket(a.renew))
	r.Delete("/delegation-token", a.byTicket(a.cancel))
}

// byTicket rejects callers that did not log in by Kerberos.
func (a tokensAPI) byTicket(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.h.caller(r).Auth != audit.Kerberos {
			a.h.text(w, r, http.StatusForbidden, notByTicket)
			return
		}
		serve(w, r)
	}
}

// issue issues a token of the caller.
func (a tokensAPI) issue(w http.ResponseWriter, r *http.Request) {
	var doc struct {
		XMLName xml.Name `json:"-" xml:"delegation-token"`
		Renewer string   `json:"renewer" xml:"renewer"`
	}
	if err := a.h.decode(w, r, &doc); err != nil {
		a.h.refuse(w, r, err)
		return
	}
	if doc.Renewer == "" {
		a.h.refuse(w, r, badRequest(cause+`The request names no renewer; give {"renewer": "USER"}`))
		return
	}
	issued, err := do(a.h, r, a.h.s.IssueToken(a.h.caller(r), doc.Renewer))
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	id, err := token.ParseDelegation(issued.Token.Identifier)
	if err != nil {
		a.h.refuse(w, r, err)
		return
	}
	a.h.reply(w, r, http.StatusOK, "delegation-token", natural, func(w *writer) {
		w.Text("token", issued.Token.URLString())
		w.Text("renewer", id.Renewer)
		w.Text("owner", id.Owner)
		w.Text("kind", issued.Token.Kind)
		w.Int("expiration-time", millis(issued.Expires))
		w.Int("max-validity", millis(id.Max))
	})
}

// renew extends a token for its renewer.
func (a tokensAPI) renew(w http.ResponseWriter, r *http.Request) {
	t, ok := a.sent(w, r)
	if !ok {
		return
	}
	expires, err := do(a.h, r, a.h.s.RenewToken(a.h.caller(r), t))
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.h.reply(w, r, http.StatusOK, "delegation-token", natural, func(w *writer) {
		w.Int("expiration-time", millis(expires))
	})
}

// cancel ends a token for its owner or its renewer.
func (a tokensAPI) cancel(w http.ResponseWriter, r *http.Request) {
	t, ok := a.sent(w, r)
	if !ok {
		return
	}
	if _, err := do(a.h, r, a.h.s.CancelToken(a.h.caller(r), t)); err != nil {
		a.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// sent reads the token to renew or cancel. If it returns false, the call has been answered.
func (a tokensAPI) sent(w http.ResponseWriter, r *http.Request) (t token.Token, ok bool) {
	text := r.Header.Get(tokenHeader)
	if text == "" {
		a.h.refuse(w, r, badRequest(cause+"Header '"+tokenHeader+"' containing encoded token not found"))
		return t, false
	}
	t, err := token.ParseURLString(text)
	if err != nil {
		a.h.refuse(w, r, badRequest(cause+"Header '"+tokenHeader+"' has no valid token: "+err.Error()))
		return t, false
	}
	return t, true
}

// refuse rejects a call about a token; an unknown or forged token is forbidden, as in YARN.
func (a tokensAPI) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, creel.ErrInvalidToken) {
		err = &refusal{http.StatusForbidden, classForbidden, err.Error()}
	}
	a.h.refuse(w, r, err)
}
