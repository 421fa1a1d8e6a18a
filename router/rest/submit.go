// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// readSubmission reads the fields of a submission that policies use.
func readSubmission(q *request) (sub policies.Submission, err error) {
	var doc webdoc.Submission
	if err := q.doc.Decode(&doc); err != nil {
		if errors.Is(err, webdoc.ErrMediaType) {
			return sub, err
		}
		return sub, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the submission cannot be read",
			Why:  strictjson.Worded(err).Error(),
			Try:  "send an application-submission-context as JSON or XML, with its Content-Type",
		}
	}
	id, err := creel.ParseApplicationID(string(doc.ID))
	if err != nil {
		why := "java.lang.Exception: Error parsing application id " + string(doc.ID)
		if doc.ID == "" {
			why = "Appid cannot be empty or null"
		}
		return sub, &creel.Error{Kind: creel.ErrInvalidRequest, What: why}
	}
	if sub, err = server.ReadSubmission(doc.Context(id), q.user); err != nil {
		return sub, err
	}
	if doc.Reservation != "" {
		if sub.Reservation, err = creel.ParseReservationID(string(doc.Reservation)); err != nil {
			return sub, &creel.Error{Kind: creel.ErrInvalidRequest, What: err.Error()}
		}
	}
	return sub, nil
}

// submit forwards a submission unchanged to the home that policies choose by some of its fields.
func (h *Handler) submit(w http.ResponseWriter, r *http.Request) {
	q, err := read(w, r)
	var sub policies.Submission
	if err == nil {
		sub, err = readSubmission(q)
	}
	if err == nil {
		err = h.server.CheckSize(sub.Application, len(q.body))
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	var answer reply
	out := h.server.Submit(r.Context(), sub, func(ctx context.Context, m *remote.Member, claim int64) error {
		q.head.Set("X-Creel-Claim", strconv.FormatInt(claim, 10))
		answer, err = q.at(ctx, m)
		return err
	})
	if out.Err != nil {
		fail(w, r, out.Err)
		return
	}
	if answer.head == nil { // home had it from an earlier forward
		answer.head = http.Header{}
	}
	answer.status = http.StatusAccepted
	answer.head.Set("Location", webdoc.Origin(r)+base+"/apps/"+sub.Application.String())
	pass(w, r, answer)
}
