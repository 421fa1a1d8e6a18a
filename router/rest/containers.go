// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
)

// attemptPath returns the path of an attempt's document.
func attemptPath(a creel.AttemptID) string {
	return base + "/apps/" + a.Application.String() + "/appattempts/" + a.String()
}

// containersOf returns the path of the list of an attempt's containers.
func containersOf(a creel.AttemptID) string { return attemptPath(a) + "/containers" }

// elsewhere returns the same call for another path.
func (q *request) elsewhere(r *http.Request, path string) *request {
	other := *q
	other.path = path
	if r.URL.RawQuery != "" {
		other.path += "?" + r.URL.RawQuery
	}
	return &other
}

// containers joins the members' lists of an attempt's containers (server.Containers).
func (h *Handler) containers(w http.ResponseWriter, r *http.Request) {
	app, q, ok := aboutApp(w, r)
	if !ok {
		return
	}
	attempt, err := creel.ParseAttemptID(chi.URLParam(r, "attemptid"))
	if err != nil || attempt.Application != app { // home rejects it
		h.atHome(w, r, app, q)
		return
	}
	q.head.Set("Accept", "application/json")
	lists, err := server.Containers(r.Context(), h.server, attempt,
		func(ctx context.Context, m *remote.Member, at creel.AttemptID) ([]byte, error) {
			ask := q
			if at != attempt {
				ask = q.elsewhere(r, containersOf(at))
			}
			answer, err := ask.at(ctx, m)
			return answer.body, err
		})
	if err != nil {
		fail(w, r, notFoundText(err, app))
		return
	}
	_, missing := router.Present(slices.DeleteFunc(slices.Clone(lists), func(p router.Part[[]byte]) bool {
		return notFound(p.Err)
	}))
	tellMissing(w, missing)
	const typ = "containers document"
	write(w, r, http.StatusOK, rooted(r, h.yarn.document(typ, lists), xmlRoots[typ]))
}

// container asks home for one container. If home does not have it or does not answer, it asks the members that may
// run it for a UAM. The error is home's.
func (h *Handler) container(w http.ResponseWriter, r *http.Request) {
	app, q, ok := aboutApp(w, r)
	if !ok {
		return
	}
	answer, home, err := server.AtHome(r.Context(), h.server, app, q.at)
	if home != nil && (notFound(err) || errors.Is(err, creel.ErrUnavailable)) {
		if there, ok := h.containerOfUAM(r, app, q, home); ok {
			answer, err = there, nil
		}
	}
	if err != nil {
		fail(w, r, notFoundText(err, app))
		return
	}
	pass(w, r, answer)
}

// containerOfUAM asks the other members for a container. Lists have a UAM's container under home's attempt, but its
// member has it under the UAM's attempt. The container's id contains the latter.
func (h *Handler) containerOfUAM(
	r *http.Request, app creel.ApplicationID, q *request, home *remote.Member,
) (reply, bool) {
	id, err := creel.ParseContainerID(chi.URLParam(r, "containerid"))
	if err != nil || !mayBeUnder(r, app, q, home, id) {
		return reply{}, false
	}
	idAt, there := h.server.IDs(r.Context(), app), q.elsewhere(r, containersOf(id.Attempt)+"/"+id.String())
	absent := &creel.Error{Kind: creel.ErrContainerNotFound, What: id.String() + " is none of " + app.String()}
	for _, p := range server.Ask(r.Context(), h.server, func(ctx context.Context, m *remote.Member) (reply, error) {
		if m.ID == home.ID || idAt(m.ID) != id.Attempt.Application {
			return reply{}, absent
		}
		return there.at(ctx, m)
	}) {
		if p.Err == nil {
			return p.Value, true
		}
	}
	return reply{}, false
}

// mayBeUnder reports whether the attempt in the path may have the container. The attempt must be the container's, or
// a past or present attempt of the application at home. If home is unavailable the check passes.
func mayBeUnder(
	r *http.Request, app creel.ApplicationID, q *request, home *remote.Member, id creel.ContainerID,
) bool {
	attempt, err := creel.ParseAttemptID(chi.URLParam(r, "attemptid"))
	switch {
	case err != nil:
		return false
	case attempt == id.Attempt:
		return true
	case attempt.Application != app:
		return false
	}
	_, err = q.elsewhere(r, attemptPath(attempt)).at(r.Context(), home)
	return !notFound(err)
}

// notFound reports whether a member answered 404.
func notFound(err error) bool {
	var refused *remote.StatusError
	return errors.As(err, &refused) && refused.Code == http.StatusNotFound
}
