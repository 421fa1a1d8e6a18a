// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// reserve submits a reservation. A call without a reservation id goes to any member, which rejects it, here and
// below.
func (h *Handler) reserve(w http.ResponseWriter, r *http.Request) {
	q, id, ok := h.aboutReservation(w, r)
	if !ok {
		return
	}
	body := unrooted(q.body, "reservation-submission-context")
	what := server.Reservation{ID: id, Queue: creel.QueuePath(element(body, "queue")), User: q.user}
	definition := unrooted(body, "reservation-definition")
	deadline, err := strconv.ParseInt(element(definition, "deadline"), 10, 64)
	if again := element(definition, "recurrence-expression"); err == nil && (again == "" || again == "0") {
		what.Deadline = time.UnixMilli(deadline)
	}
	var answer reply
	err = h.server.Reserve(r.Context(), what, func(ctx context.Context, m *remote.Member) (err error) {
		answer, err = q.at(ctx, m)
		return err
	})
	if err != nil {
		fail(w, r, err)
		return
	}
	pass(w, r, answer)
}

// aboutReservation reads a call about one reservation; false: it has been answered.
func (h *Handler) aboutReservation(w http.ResponseWriter, r *http.Request) (*request, creel.ReservationID, bool) {
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return nil, creel.ReservationID{}, false
	}
	text := r.URL.Query().Get("reservation-id")
	for _, root := range []string{
		"reservation-submission-context", "reservation-update-context", "reservation-delete-context",
	} {
		if text == "" {
			text = element(unrooted(q.body, root), "reservation-id")
		}
	}
	id, err := creel.ParseReservationID(text)
	if err != nil {
		h.forwardAny(w, r, q)
		return nil, id, false
	}
	return q, id, true
}

// unrooted returns a JSON document without the root that newer clients put around it; others stay unchanged.
func unrooted(body []byte, root string) []byte {
	if inner := rawjson.Get(body, root); inner != nil {
		return inner
	}
	return body
}

// reservation calls the home of one, to change it.
func (h *Handler) reservation(w http.ResponseWriter, r *http.Request) {
	if q, id, ok := h.aboutReservation(w, r); ok {
		answer, err := server.AtReservation(r.Context(), h.server, id, q.at)
		h.passOr(w, r, answer, err)
	}
}

// unreserve deletes a reservation at its home.
func (h *Handler) unreserve(w http.ResponseWriter, r *http.Request) {
	if q, id, ok := h.aboutReservation(w, r); ok {
		answer, err := server.Unreserve(r.Context(), h.server, id, q.at)
		h.passOr(w, r, answer, err)
	}
}

// reservations lists the plan of a queue: at the home of the reservation it names, if that is recorded, else the
// plans of all members that have any as one.
func (h *Handler) reservations(w http.ResponseWriter, r *http.Request) {
	if text := r.URL.Query().Get("reservation-id"); text != "" {
		if id, err := creel.ParseReservationID(text); err != nil || h.server.HasHome(r.Context(), id) {
			h.reservation(w, r)
			return
		}
	}
	parts := h.askJSON(r, remote.Read)
	planning := slices.DeleteFunc(slices.Clone(parts), func(p router.Part[[]byte]) bool {
		return errors.Is(server.OfNoPlan(p.Err), creel.ErrQueueNotFound)
	})
	if len(planning) == 0 { // the rejection is the answer
		planning = parts
	}
	h.merge(w, r, "reservations document", planning)
}

// passOr writes a member's answer on, or why there is none.
func (h *Handler) passOr(w http.ResponseWriter, r *http.Request, answer reply, err error) {
	if err != nil {
		fail(w, r, err)
		return
	}
	pass(w, r, answer)
}
