// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
	"github.com/go-chi/chi/v5"
)

// mountOff mounts features that this ResourceManager lacks, with YARN's responses for a disabled feature. They are
// reservations and a log of the scheduler.
func (h *Handler) mountOff(r chi.Router) {
	// Reservations.
	noReservations := badRequest(cause + "Reservation is not enabled. Please enable & try again")
	r.Post(
		"/reservation/new-reservation",
		h.refusing(
			&refusal{
				http.StatusServiceUnavailable,
				classRuntime,
				"Unable to create new reservation from RM web service",
			},
		),
	)
	for _, path := range []string{"/reservation/submit", "/reservation/update", "/reservation/delete"} {
		r.Post(path, h.refusing(noReservations))
	}
	r.Get("/reservation/list", h.refusing(noReservations))
	// The scheduler's own log.
	r.Post(
		"/scheduler/logs",
		h.refusing(&refusal{http.StatusBadRequest, classUnsupported, "this scheduler has no log of its own"}),
	)
}

// unlessOff rejects submissions if Config.NoSubmissions is set.
func (h *Handler) unlessOff(serve http.HandlerFunc) http.HandlerFunc {
	if !h.conf.NoSubmissions {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) {
		h.text(w, r, http.StatusForbidden, "App submission via REST is disabled.")
	}
}

func (h *Handler) refusing(err error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h.refuse(w, r, err) }
}

// queueAccess reports whether a user may submit to or administer a queue. To query another user the caller
// must administer the queue.
func (h *queuesAPI) queueAccess(w http.ResponseWriter, r *http.Request) {
	q, name, of := r.URL.Query(), param(r, "queue"), ""
	who := h.caller(r)
	if of = q.Get("user"); of == "" {
		h.refuse(w, r, illegal("Null user"))
		return
	}
	kind := q.Get("queue-acl-type")
	switch kind {
	case "":
		kind = "SUBMIT_APPLICATIONS"
	case "SUBMIT_APPLICATIONS", "ADMINISTER_QUEUE":
	default:
		h.refuse(
			w,
			r,
			badRequest(
				cause+"Specified queueAclType="+kind+" is not a valid type, valid queue acl types={SUBMIT_APPLICATIONS/ADMINISTER_QUEUE}",
			),
		)
		return
	}
	allowed, callers, its := false, h.s.Groups(who.User), h.s.Groups(of)
	err := h.ask(r, func(m *rm.Machine, _ time.Time) error {
		_, known := m.Queue(name)
		if !known || (h.s.ACLs() && !h.s.IsAdmin(who.User) && !m.MayAdminister(name, who.User, callers)) {
			return &refusal{
				http.StatusForbidden,
				classForbidden,
				cause + "User=" + who.User + " doesn't haven access to queue=" + name +
					" so it cannot check ACLs for other users.",
			}
		}
		switch {
		case !h.s.ACLs():
			allowed = true
		case kind == "ADMINISTER_QUEUE":
			allowed = m.MayAdminister(name, of, its)
		default:
			allowed = m.MaySubmit(name, of, its)
		}
		return nil
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "rmQueueAclInfo", mapped, func(w *writer) {
		w.Text("allowed", strconv.FormatBool(allowed))
		w.Text("user", of)
		if allowed {
			w.Text("diagnostics", "")
		} else {
			w.Text("diagnostics", "User="+of+" doesn't have access to queue="+name+" with acl-type="+kind)
		}
	})
}
