// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/creelrm/creel"
)

const (
	classBadRequest = "org.apache.hadoop.yarn.webapp.BadRequestException"
	classNotFound   = "org.apache.hadoop.yarn.webapp.NotFoundException"
	classForbidden  = "org.apache.hadoop.yarn.webapp.ForbiddenException"
	classYarn       = "org.apache.hadoop.yarn.exceptions.YarnException"
	classIllegal    = "java.lang.IllegalArgumentException"
)

// refusal is an error with the status and class YARN's web door gives it.
type refusal struct {
	status         int
	class, message string
}

func (e *refusal) Error() string { return e.message }

func badRequest(message string) error {
	return &refusal{http.StatusBadRequest, classBadRequest, message}
}

func notFound(message string) error {
	return &refusal{http.StatusNotFound, classNotFound, "java.lang.Exception: " + message}
}

// refuse writes an error as a RemoteException.
func (o *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *refusal
	if !errors.As(err, &e) {
		e = &refusal{http.StatusServiceUnavailable, classYarn, err.Error()}
		switch {
		case errors.Is(err, creel.ErrApplicationNotFound), errors.Is(err, creel.ErrAttemptNotFound), errors.Is(err, creel.ErrContainerNotFound), errors.Is(err, creel.ErrNodeNotFound):
			e.status, e.class = http.StatusNotFound, classNotFound
		case errors.Is(err, creel.ErrNotPermitted):
			e.status, e.class = http.StatusForbidden, classForbidden
		case errors.Is(err, creel.ErrInvalidRequest), errors.Is(err, creel.ErrInvalidResource), errors.Is(err, creel.ErrQueueNotFound):
			e.status, e.class = http.StatusBadRequest, classBadRequest
		}
	}
	o.reply(w, r, e.status, "RemoteException", false, func(w *writer) {
		w.Text("exception", e.class[strings.LastIndexByte(e.class, '.')+1:])
		w.Text("message", e.message)
		w.Text("javaClassName", e.class)
	})
}
