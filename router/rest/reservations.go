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

// reserve submits a reservation. Here and below, a call without a reservation id goes to any member, which rejects
// it.
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

// aboutReservation reads a call about one reservation. If it returns false, the call has been answered.
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

// unrooted returns a JSON document without the root that newer clients add; other documents stay unchanged.
func unrooted(body []byte, root string) []byte {
	if inner := rawjson.Get(body, root); inner != nil {
		return inner
	}
	return body
}

// reservation forwards a change of a reservation to its home.
func (h *Handler) reservation(w http.ResponseWriter, r *http.Request) {
	if q, id, ok := h.aboutReservation(w, r); ok {
		answer, err := server.AtReservation(r.Context(), h.server, id, q.at)
		passOr(w, r, answer, err)
	}
}

// unreserve deletes a reservation at its home.
func (h *Handler) unreserve(w http.ResponseWriter, r *http.Request) {
	if q, id, ok := h.aboutReservation(w, r); ok {
		answer, err := server.Unreserve(r.Context(), h.server, id, q.at)
		passOr(w, r, answer, err)
	}
}

// reservations lists the plan of a queue. If the call names a reservation with a recorded home, it asks that home.
// Otherwise it merges the plans of all members that have plans.
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
	if len(planning) == 0 { // answer with the rejection
		planning = parts
	}
	h.merge(w, r, "reservations document", planning)
}

// passOr writes a member's answer to the client, or the error.
func passOr(w http.ResponseWriter, r *http.Request, answer reply, err error) {
	if err != nil {
		fail(w, r, err)
		return
	}
	pass(w, r, answer)
}
