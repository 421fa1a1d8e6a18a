// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/subcluster"
	"github.com/go-chi/chi/v5"
)

// maxOrder bounds the body of a change: a policy document and its envelope.
const maxOrder = 1 << 20

// order reads the body of a change, {} for none. A change must be JSON: browsers let a form of another site send JSON
// only after a preflight request.
func order(w http.ResponseWriter, r *http.Request, into any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		problem(w, notJSON, "send a change with Content-Type: application/json, {} if it has no fields")
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxOrder))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		err = fmt.Errorf("it is longer than %d bytes", long.Limit)
	case err == nil && len(bytes.TrimSpace(body)) > 0:
		err = strictjson.Unmarshal(body, into)
	}
	if err != nil {
		problem(w, invalidRequest, "invalid body: "+err.Error())
	}
	return err == nil
}

// given turns a null document into an empty one, which means removal. It rejects an order without the field: a
// missing field must not remove the document.
func given(w http.ResponseWriter, document *json.RawMessage) bool {
	if *document == nil {
		problem(w, invalidRequest, "the order's document is missing; null removes it")
		return false
	}
	if string(*document) == "null" {
		*document = nil
	}
	return true
}

// pathParam returns an unescaped parameter of the path; unchanged if it cannot be unescaped.
func pathParam(r *http.Request, name string) string {
	text := chi.URLParam(r, name)
	if r.URL.RawPath == "" { // chi used the unescaped path
		return text
	}
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

func memberParam(r *http.Request) creel.SubclusterID {
	return creel.SubclusterID(pathParam(r, "id"))
}

// DrainDoc is the answer to a drain.
type DrainDoc struct {
	ID       creel.SubclusterID `json:"id"`
	Draining operator.Mode      `json:"draining"`
	Warning  string             `json:"warning,omitempty"`
}

// membersAPI serves administrators' changes of members.
type membersAPI struct{ operator *operator.Operator }

// drain stops new work for a member: PUT of a DrainOrder.
func (a *membersAPI) drain(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Mode   string `json:"mode"`
		Reason string `json:"reason"`
	}
	if !order(w, r, &in) {
		return
	}
	mode, err := operator.ParseMode(in.Mode)
	if err == nil {
		err = a.operator.Drain(r.Context(), caller(r), memberParam(r), mode, in.Reason)
	}
	done(w, err, DrainDoc{memberParam(r), mode, a.operator.Warning()})
}

func (a *membersAPI) undrain(w http.ResponseWriter, r *http.Request) {
	err := a.operator.Undrain(r.Context(), caller(r), memberParam(r))
	done(w, err, map[string]string{"id": string(memberParam(r))})
}

func (a *membersAPI) deregister(w http.ResponseWriter, r *http.Request) {
	var in struct{}
	if !order(w, r, &in) {
		return
	}
	err := a.operator.Deregister(r.Context(), caller(r), memberParam(r))
	done(w, err, map[string]string{"id": string(memberParam(r))})
}

func (a *membersAPI) remove(w http.ResponseWriter, r *http.Request) {
	err := a.operator.Remove(r.Context(), caller(r), memberParam(r))
	done(w, err, map[string]string{"id": string(memberParam(r))})
}

func done(w http.ResponseWriter, err error, what any) {
	if err != nil {
		problemOf(w, err)
		return
	}
	answer(w, what)
}

// ViewDoc is the input of policies about the federation, as a document.
type ViewDoc struct {
	Members []ViewMember `json:"members"`
	Plan    *ViewPlan    `json:"plan,omitempty"` // the rebalancer's, if one is in force
}

// ViewPlan is a plan of a ViewDoc.
type ViewPlan struct {
	Version  int64           `json:"version"`
	At       time.Time       `json:"at"`       // time of the write, by the store's clock
	Document json.RawMessage `json:"document"` // as in the state store
}

// ViewMember is a member of a ViewDoc.
type ViewMember struct {
	ID     creel.SubclusterID `json:"id"`
	State  string             `json:"state"` // active if omitted
	Report json.RawMessage    `json:"report,omitempty"`
}

// ViewDocOf describes a view.
func ViewDocOf(view *subcluster.View) (ViewDoc, error) {
	doc := ViewDoc{Members: []ViewMember{}}
	for i := range view.Members {
		m := &view.Members[i]
		report, err := m.Load.JSON()
		if err != nil {
			return doc, err
		}
		doc.Members = append(doc.Members, ViewMember{ID: m.ID, State: m.State.String(), Report: report})
	}
	if p := view.Plan; p != nil {
		document, err := json.Marshal(p)
		if err != nil {
			return doc, err
		}
		doc.Plan = &ViewPlan{Version: p.Version, At: p.At, Document: document}
	}
	return doc, nil
}

func (h *Handler) view(w http.ResponseWriter, _ *http.Request) {
	view := h.server.View()
	if view == nil {
		problem(w, noView, "the router has not read the state store")
		return
	}
	doc, err := ViewDocOf(view)
	done(w, err, doc)
}

// number reads a number from the query, or returns the default.
func number(r *http.Request, name string, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: name + " is not a number of 0 or more",
		}
	}
	return n, nil
}
