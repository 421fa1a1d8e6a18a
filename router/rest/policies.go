// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

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

// policiesAPI serves the queues' policies.
type policiesAPI struct {
	operator *operator.Operator
	server   *server.Server
}

func (a *policiesAPI) list(w http.ResponseWriter, r *http.Request) {
	list, err := a.operator.Policies(r.Context())
	done(w, err, policiesDoc(r.Context(), list))
}

func (a *policiesAPI) get(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	version, err := number(r, "version", 0)
	var p subcluster.Policy
	if err == nil {
		p, err = a.operator.Policy(r.Context(), q, version)
	}
	done(w, err, PolicyDocOf(p))
}

func (a *policiesAPI) history(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	limit, err := number(r, "limit", 20)
	before, err2 := number(r, "before", 0)
	var list []subcluster.Policy
	if err = errors.Join(err, err2); err == nil {
		list, err = a.operator.PolicyHistory(r.Context(), q, before, int(min(limit, statestore.MaxPage)))
	}
	done(w, err, policiesDoc(r.Context(), list))
}

func (a *policiesAPI) put(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	var in PolicyOrder
	if !order(w, r, &in) || !given(w, &in.Document) {
		return
	}
	p, err := a.operator.PutPolicy(r.Context(), caller(r), statestore.PolicyWrite{
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
func (a *policiesAPI) submissions(w http.ResponseWriter, r *http.Request) {
	q, ok := queueParam(w, r)
	if !ok {
		return
	}
	limit, err := number(r, "limit", maxPreview)
	doc := SubmissionsDoc{Submissions: []SubmissionDoc{}}
	if err = errors.Join(err, a.operator.MayPreview(caller(r))); err == nil {
		for _, s := range a.server.Recent(q, int(min(limit, maxPreview))) {
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

// preview decides the last submissions to a queue again under a document, for users with access to them. It
// makes no change.
func (a *policiesAPI) preview(w http.ResponseWriter, r *http.Request) {
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
	err := a.operator.MayPreview(caller(r))
	var fresh policies.Policy
	if err == nil {
		fresh, err = policies.Parse(in.Document)
	}
	if err == nil && a.server.View() == nil {
		err = &creel.Error{Kind: creel.ErrUnavailable, What: "the router has not read the state store"}
	}
	if err != nil {
		problemOf(w, err)
		return
	}
	answer(w, a.server.Preview(q, fresh, maxPreview))
}
