// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster/remote"
)

// submission is the part of a submission document that the router reads, by its JSON and XML names.
type submission struct {
	XMLName xml.Name    `json:"-" xml:"application-submission-context"`
	ID      webdoc.Text `json:"application-id" xml:"application-id"`
	Name    webdoc.Text `json:"application-name" xml:"application-name"`
	Queue   webdoc.Text `json:"queue" xml:"queue"`
	Type    webdoc.Text `json:"application-type" xml:"application-type"`
	AMLabel webdoc.Text `json:"am-container-node-label-expression" xml:"am-container-node-label-expression"`
	Label   webdoc.Text `json:"app-node-label-expression" xml:"app-node-label-expression"`
	In      webdoc.Text `json:"reservation-id" xml:"reservation-id"`
	Tags    struct {
		Tag webdoc.Many[webdoc.Text] `json:"tag" xml:"tag"`
	} `json:"application-tags" xml:"application-tags"`
	Resource struct {
		Memory webdoc.Long `json:"memory" xml:"memory"`
		VCores webdoc.Int  `json:"vCores" xml:"vCores"`
	} `json:"resource" xml:"resource"`
}

// submit reads the fields that policies use, and forwards the document unchanged to the home.
func (h *Handler) submit(w http.ResponseWriter, r *http.Request) {
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	var doc submission
	err = q.doc.Decode(&doc)
	if err != nil {
		if !errors.Is(err, webdoc.ErrMediaType) {
			err = &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "the submission cannot be read",
				Why:  strictjson.Worded(err).Error(),
				Try:  "send an application-submission-context as JSON or XML, with its Content-Type",
			}
		}
		fail(w, r, err)
		return
	}
	app, err := creel.ParseApplicationID(string(doc.ID))
	if err != nil {
		why := "java.lang.Exception: Error parsing application id " + string(doc.ID)
		if doc.ID == "" {
			why = "Appid cannot be empty or null"
		}
		fail(w, r, &creel.Error{Kind: creel.ErrInvalidRequest, What: why})
		return
	}
	if err := h.server.CheckSize(app, len(q.body)); err != nil {
		fail(w, r, err)
		return
	}
	sub := policies.Submission{
		Application: app,
		Name:        string(doc.Name),
		User:        q.user,
		Type:        string(doc.Type),
		Queue:       creel.QueuePath(doc.Queue),
		Label:       string(cmp.Or(doc.AMLabel, doc.Label)),
		Tags:        webdoc.Texts(doc.Tags.Tag),
		Size:        creel.NewResource(int64(doc.Resource.Memory), int64(doc.Resource.VCores)),
	}
	if doc.In != "" {
		if sub.Reservation, err = creel.ParseReservationID(string(doc.In)); err != nil {
			fail(w, r, &creel.Error{Kind: creel.ErrInvalidRequest, What: err.Error()})
			return
		}
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
	answer.head.Set("Location", "http://"+r.Host+base+"/apps/"+app.String())
	pass(w, r, answer)
}
