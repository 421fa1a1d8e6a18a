// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
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
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
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

// drain stops new work for a member: PUT of a DrainOrder.
func (h *Handler) drain(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Mode   string `json:"mode"`
		Reason string `json:"reason"`
	}
	if !order(w, r, &in) {
		return
	}
	mode, err := operator.ParseMode(in.Mode)
	if err == nil {
		err = h.conf.Operator.Drain(r.Context(), caller(r), memberParam(r), mode, in.Reason)
	}
	done(w, err, DrainDoc{memberParam(r), mode, h.conf.Operator.Warning()})
}

func (h *Handler) undrain(w http.ResponseWriter, r *http.Request) {
	err := h.conf.Operator.Undrain(r.Context(), caller(r), memberParam(r))
	done(w, err, map[string]string{"id": string(memberParam(r))})
}

func (h *Handler) deregister(w http.ResponseWriter, r *http.Request) {
	var in struct{}
	if !order(w, r, &in) {
		return
	}
	err := h.conf.Operator.Deregister(r.Context(), caller(r), memberParam(r))
	done(w, err, map[string]string{"id": string(memberParam(r))})
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request) {
	err := h.conf.Operator.Remove(r.Context(), caller(r), memberParam(r))
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

// PolicyDoc is a version of a queue's policy.
type PolicyDoc struct {
	Queue    creel.QueuePath `json:"queue"`
	Version  int64           `json:"version"`
	Home     string          `json:"home,omitempty"`
	Split    string          `json:"split,omitempty"`
	Author   string          `json:"author,omitempty"`
	Comment  string          `json:"comment,omitempty"`
	Time     time.Time       `json:"time"`
	Document json.RawMessage `json:"document,omitempty"`
	Removed  bool            `json:"removed,omitempty"`
}

// PolicyDocOf describes a version. The document is unchanged if it is JSON.
func PolicyDocOf(p subcluster.Policy) PolicyDoc {
	d := PolicyDoc{
		Queue:   p.Queue,
		Version: p.Version,
		Author:  p.Author,
		Comment: p.Comment,
		Time:    p.Time,
		Removed: len(p.Document) == 0,
	}
	if parsed, err := policies.Parse(p.Document); err == nil && !d.Removed {
		d.Home, d.Split = parsed.HomeName(), parsed.SplitName()
	}
	if json.Valid(p.Document) {
		d.Document = p.Document
	}
	return d
}

// PoliciesDoc is a list of versions.
type PoliciesDoc struct {
	Policies []PolicyDoc `json:"policies"`
	Note     string      `json:"note,omitempty"` // set if the state store does not answer
}

func policiesDoc(ctx context.Context, list []subcluster.Policy) PoliciesDoc {
	doc := PoliciesDoc{Policies: []PolicyDoc{}, Note: lacking(ctx)}
	for _, p := range list {
		doc.Policies = append(doc.Policies, PolicyDocOf(p))
	}
	return doc
}

// PolicyOrder requests a new version of a queue's policy. A null document removes it, so that the parent queue's
// applies.
type PolicyOrder struct {
	Document  json.RawMessage `json:"document"`
	Expect    int64           `json:"expect"` // the newest version of the queue's own policy, 0 for none
	Comment   string          `json:"comment"`
	AnyMember bool            `json:"any_member"`
}

// queueParam returns the queue in a path. "*" is the policy of queues without another.
func queueParam(w http.ResponseWriter, r *http.Request) (creel.QueuePath, bool) {
	text := pathParam(r, "queue")
	if text == "*" {
		return "*", true
	}
	q, err := creel.ParseQueuePath(text)
	if err != nil || !q.IsFull() {
		problem(w, invalidRequest, "policies are written for whole paths, such as root.prod, or *")
		return "", false
	}
	return q, true
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

func (h *Handler) listPolicies(w http.ResponseWriter, r *http.Request) {
	list, err := h.conf.Operator.Policies(r.Context())
	done(w, err, policiesDoc(r.Context(), list))
}

func (h *Handler) policy(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	version, err := number(r, "version", 0)
	var p subcluster.Policy
	if err == nil {
		p, err = h.conf.Operator.Policy(r.Context(), q, version)
	}
	done(w, err, PolicyDocOf(p))
}

func (h *Handler) policyHistory(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	limit, err := number(r, "limit", 20)
	before, err2 := number(r, "before", 0)
	var list []subcluster.Policy
	if err = errors.Join(err, err2); err == nil {
		list, err = h.conf.Operator.PolicyHistory(r.Context(), q, before, int(min(limit, statestore.MaxPage)))
	}
	done(w, err, policiesDoc(r.Context(), list))
}

func (h *Handler) putPolicy(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	var in PolicyOrder
	if !order(w, r, &in) || !given(w, &in.Document) {
		return
	}
	p, err := h.conf.Operator.PutPolicy(r.Context(), caller(r), statestore.PolicyWrite{
		Queue: q, Expect: in.Expect, Document: in.Document, Comment: in.Comment,
	}, in.AnyMember)
	done(w, err, PolicyDocOf(p))
}

// SubmissionDoc is a submitted application and its home.
type SubmissionDoc struct {
	Queue    creel.QueuePath    `json:"queue"`
	User     string             `json:"user,omitempty"`
	Name     string             `json:"name,omitempty"`
	Type     string             `json:"type,omitempty"`
	Tags     []string           `json:"tags,omitempty"`
	MemoryMB int64              `json:"memory_mb"` // of the AM's container
	VCores   int64              `json:"vcores"`
	Label    string             `json:"label,omitempty"`
	ID       string             `json:"id"`
	Home     creel.SubclusterID `json:"home"`
}

// SubmissionsDoc has the last submissions of a queue, oldest first.
type SubmissionsDoc struct {
	Submissions []SubmissionDoc `json:"submissions"`
}

// maxPreview bounds the submissions in one answer.
const maxPreview = 1000

// submissions lists the submissions to a queue through this router, for a preview of another policy.
func (h *Handler) submissions(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	limit, err := number(r, "limit", maxPreview)
	doc := SubmissionsDoc{Submissions: []SubmissionDoc{}}
	if err = errors.Join(err, h.conf.Operator.MayPreview(caller(r))); err == nil {
		for _, s := range h.server.Recent(q, int(min(limit, maxPreview))) {
			doc.Submissions = append(doc.Submissions, SubmissionDoc{
				Queue: s.Queue, User: s.User, Name: s.Name, Type: s.Type, Tags: s.Tags, Label: s.Label,
				MemoryMB: s.Size.MemoryMB, VCores: s.Size.VCores, ID: s.Application.String(), Home: s.Home,
			})
		}
	}
	done(w, err, doc)
}

// SubmittedOf converts such a list to submissions.
func SubmittedOf(docs []SubmissionDoc) ([]router.PlacedSubmission, error) {
	out := make([]router.PlacedSubmission, len(docs))
	for i, s := range docs {
		id, err := creel.ParseApplicationID(s.ID)
		if err != nil {
			return nil, err
		}
		out[i] = router.PlacedSubmission{Home: s.Home, Submission: policies.Submission{
			Application: id, Name: s.Name, User: s.User, Type: s.Type, Queue: s.Queue, Tags: s.Tags, Label: s.Label,
			Size: creel.NewResource(s.MemoryMB, s.VCores),
		}}
	}
	return out, nil
}

// previewPolicy decides the last submissions to a queue again under a document, for users with access to them. It
// makes no change.
func (h *Handler) previewPolicy(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	var in struct {
		Document json.RawMessage `json:"document"`
	}
	if !order(w, r, &in) {
		return
	}
	err := h.conf.Operator.MayPreview(caller(r))
	var fresh policies.Policy
	if err == nil {
		fresh, err = policies.Parse(in.Document)
	}
	if err == nil && h.server.View() == nil {
		err = &creel.Error{Kind: creel.ErrUnavailable, What: "the router has not read the state store"}
	}
	if err != nil {
		problemOf(w, err)
		return
	}
	answer(w, h.server.Preview(q, fresh, maxPreview))
}
