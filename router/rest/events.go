// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
)

// EventsDoc is a page of events, oldest first.
type EventsDoc struct {
	Events []statestore.Event `json:"events"`
	Next   string             `json:"next"`           // the cursor of later events
	Note   string             `json:"note,omitempty"` // set if the state store does not answer
}

// eventsAPI serves the federation's events, as a page or as a stream.
type eventsAPI struct {
	log      *events.Log
	operator *operator.Operator
	patient  func(ctx context.Context) context.Context
	stop     <-chan struct{}
}

// ofApplications are the kinds of events that only administrators see of other users.
var ofApplications = []statestore.EventKind{
	statestore.EventKill, statestore.EventMove, statestore.EventPriority, statestore.EventLifetime,
}

// query reads the filters. Users other than administrators see no addresses, and no changes of other users'
// applications.
func (a *eventsAPI) query(r *http.Request) (q events.Query, err error) {
	values, viewer := r.URL.Query(), caller(r)
	q = events.Query{
		After: values.Get("after"), Before: values.Get("before"),
		Kind: statestore.EventKind(values.Get("kind")), Subject: values.Get("subject"), User: values.Get("user"),
	}
	limit, err := number(r, "limit", 100)
	if err == nil && (limit < 1 || limit > apps.MaxPage) {
		err = invalid("limit is not a number from 1 to 1000", "")
	}
	q.Limit = int(limit)
	if text := values.Get("since"); err == nil && text != "" {
		q.Since, err = events.ParseSince(text, time.Now())
	}
	if !a.operator.Permits(viewer) {
		q.Visible = func(e *statestore.Event) bool {
			return e.User == viewer || !slices.Contains(ofApplications, e.Kind)
		}
	}
	return q, errors.Join(err, events.CheckKind(q.Kind))
}

func (a *eventsAPI) serve(w http.ResponseWriter, r *http.Request) {
	q, err := a.query(r)
	if err != nil {
		problemOf(w, err)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		if last := r.Header.Get("Last-Event-ID"); last != "" {
			q.After = last
		}
		q.Before = "" // a stream has no end
		if err := statestore.CheckCursor(q.After); err != nil {
			problemOf(w, err)
			return
		}
		a.stream(w, r, q)
		return
	}
	doc, err := a.read(r.Context(), q)
	if err != nil {
		problemOf(w, err)
		return
	}
	answer(w, doc)
}

// read reads a page. If the store does not answer, the page has the events that this router read before, and a note.
func (a *eventsAPI) read(ctx context.Context, q events.Query) (EventsDoc, error) {
	page, next, age, err := a.log.Read(ctx, q)
	doc := EventsDoc{Events: slices.Clone(page), Next: next}
	if doc.Events == nil {
		doc.Events = []statestore.Event{}
	}
	if q.Visible != nil {
		for i := range doc.Events {
			doc.Events[i].From = ""
		}
	}
	if p := statestore.PatienceOf(ctx); errors.Is(err, creel.ErrUnavailable) && p != nil {
		err = nil
		if age > 0 {
			p.Recalled(age)
		} else {
			p.Lacks("events")
		}
		doc.Note = lacking(ctx)
	}
	return doc, err
}

// The intervals of a stream: between reads, and of signs of life.
const (
	streamEvery = time.Second
	streamAlive = 15 * time.Second
)

// stream sends events as they are recorded, each with its cursor as id, after the newest ones or after the client's
// cursor. It ends with the client or the server.
func (a *eventsAPI) stream(w http.ResponseWriter, r *http.Request, q events.Query) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	note, sent := "", time.Time{}
	for {
		doc, err := a.read(a.patient(r.Context()), q)
		if err != nil {
			return // the client connects again, with its cursor
		}
		var b strings.Builder
		for i := range doc.Events {
			line, _ := json.Marshal(doc.Events[i]) // texts: no error
			fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", doc.Events[i].ID, doc.Events[i].Kind, line)
		}
		if doc.Next != "" {
			q.After, q.Since = doc.Next, time.Time{}
		}
		if now := doc.Note != ""; now != (note != "") || sent.IsZero() {
			note = doc.Note
			line, _ := json.Marshal(map[string]string{"note": note})
			fmt.Fprintf(&b, "event: note\ndata: %s\n\n", line)
		}
		if b.Len() == 0 && time.Since(sent) >= streamAlive {
			b.WriteString(": alive\n\n")
		}
		if b.Len() > 0 {
			if _, err := w.Write([]byte(b.String())); err != nil || out.Flush() != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-a.stop:
			return
		}
	}
}
