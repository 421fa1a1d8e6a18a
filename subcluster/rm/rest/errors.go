// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/server"
)

const (
	classBadRequest    = "org.apache.hadoop.yarn.webapp.BadRequestException"
	classNotFound      = "org.apache.hadoop.yarn.webapp.NotFoundException"
	classForbidden     = "org.apache.hadoop.yarn.webapp.ForbiddenException"
	classYarn          = "org.apache.hadoop.yarn.exceptions.YarnException"
	classRuntime       = "org.apache.hadoop.yarn.exceptions.YarnRuntimeException"
	classAuthorization = "org.apache.hadoop.security.authorize.AuthorizationException"
	classIllegal       = "java.lang.IllegalArgumentException"
	classUnsupported   = "java.lang.UnsupportedOperationException"
	classWeb           = "javax.ws.rs.WebApplicationException"
)

// refusal is an error with the status and class of YARN's web application.
type refusal struct {
	status         int
	class, message string
}

func (e *refusal) Error() string { return e.message }

// The messages for a bad request or an unknown object begin with the class of their cause, as in Hadoop.
const cause = "java.lang.Exception: "

func badRequest(message string) error {
	return &refusal{http.StatusBadRequest, classBadRequest, message}
}

func illegal(message string) error {
	return &refusal{http.StatusBadRequest, classIllegal, message}
}

func notFound(message string) error {
	return &refusal{http.StatusNotFound, classNotFound, cause + message}
}

// wrongMethod responds as Jersey's mapper does: 503 in place of the usual 405.
func (h *Handler) wrongMethod(w http.ResponseWriter, r *http.Request) {
	h.refuse(w, r, &refusal{http.StatusServiceUnavailable, classWeb, r.Method + " is not a method of " + r.URL.Path})
}

// refuse writes an error as a RemoteException.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *refusal
	if !errors.As(err, &e) {
		e = &refusal{http.StatusServiceUnavailable, classYarn, err.Error()}
		switch {
		case errors.Is(err, server.ErrUnclear): // for routers 503 is a refusal, and 500 is unclear
			e.status = http.StatusInternalServerError
		case errors.Is(err, creel.ErrApplicationNotFound),
			errors.Is(err, creel.ErrAttemptNotFound),
			errors.Is(err, creel.ErrContainerNotFound),
			errors.Is(err, creel.ErrNodeNotFound):
			e.status, e.class = http.StatusNotFound, classNotFound
		case errors.Is(err, creel.ErrReadOnly):
			e.status = http.StatusInsufficientStorage
		case errors.Is(err, creel.ErrNotPermitted):
			e.status, e.class = http.StatusForbidden, classForbidden
		case errors.Is(err, creel.ErrEnded):
			e.status, e.class = http.StatusConflict, classBadRequest
		case errors.Is(err, creel.ErrInvalidRequest),
			errors.Is(err, creel.ErrInvalidResource),
			errors.Is(err, creel.ErrQueueNotFound):
			e.status, e.class = http.StatusBadRequest, classBadRequest
		}
	}
	h.reply(w, r, e.status, "RemoteException", rooted, func(w *writer) {
		w.Text("exception", e.class[strings.LastIndexAny(e.class, ".$")+1:])
		w.Text("message", e.message)
		w.Text("javaClassName", e.class)
	})
}
