// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"regexp"
	"strconv"

	"github.com/creelrm/creel"
)

// problemPage has a heading for each code of problems.
const problemPage = "https://github.com/creelrm/creel/blob/main/docs/reference/error-codes.md"

// problemKind is one kind of error of the native API. Its code never changes.
type problemKind struct {
	code          string
	status        int
	title         string
	kinds         []error // errors of this kind
	cause, remedy string  // for the page of codes
}

var (
	notPermitted = &problemKind{
		code: "not_permitted", status: http.StatusForbidden, title: "not permitted",
		kinds:  []error{creel.ErrNotPermitted},
		cause:  "The user may not make this call.",
		remedy: "Act as another user, or let an administrator add the user to the access list in `detail`.",
	}
	invalidToken = &problemKind{
		code: "invalid_token", status: http.StatusForbidden, title: "not permitted",
		kinds:  []error{creel.ErrInvalidToken},
		cause:  "The delegation token is malformed, expired or cancelled.",
		remedy: "Get a new token.",
	}
	conflict = &problemKind{
		code: "conflict", status: http.StatusConflict, title: "conflict",
		kinds:  []error{creel.ErrConflict, creel.ErrStale, creel.ErrNotRegistered},
		cause:  "The present state is not the state that the call expects: it has changed since it was read.",
		remedy: "Read the state again, then repeat the call if it still applies.",
	}
	queueNotFound = &problemKind{
		code: "queue_not_found", status: http.StatusNotFound, title: "not found",
		kinds:  []error{creel.ErrQueueNotFound},
		cause:  "There is no such queue.",
		remedy: "List the queues with `creel queue list`.",
	}
	subclusterNotFound = &problemKind{
		code: "subcluster_not_found", status: http.StatusNotFound, title: "not found",
		kinds:  []error{creel.ErrSubclusterNotFound},
		cause:  "There is no such subcluster in this federation.",
		remedy: "List the subclusters with `creel subcluster list`.",
	}
	applicationNotFound = &problemKind{
		code: "application_not_found", status: http.StatusNotFound, title: "application not found",
		kinds:  []error{creel.ErrApplicationNotFound},
		cause:  "No subcluster and no record in the state store has the application.",
		remedy: "Check the id; applications that ended long ago are forgotten.",
	}
	nodeNotFound = &problemKind{
		code: "node_not_found", status: http.StatusNotFound, title: "not found",
		kinds:  []error{creel.ErrNodeNotFound},
		cause:  "No subcluster has the node or host.",
		remedy: "List the nodes with `creel node list`.",
	}
	containerNotFound = &problemKind{
		code: "container_not_found", status: http.StatusNotFound, title: "not found",
		kinds:  []error{creel.ErrContainerNotFound},
		cause:  "The node does not have the container, or has deleted its logs.",
		remedy: "With log aggregation `yarn logs` reads them.",
	}
	notEnabled = &problemKind{
		code: "not_enabled", status: http.StatusNotImplemented, title: "not enabled",
		kinds:  []error{creel.ErrNotEnabled},
		cause:  "The subcluster cannot do this: its settings or its software do not have it.",
		remedy: "Read `detail`: it names the setting, or the other way.",
	}
	noSuchPath = &problemKind{
		code: "no_such_path", status: http.StatusNotFound, title: "no such path",
		cause:  "The API does not have this path.",
		remedy: "See `/api/v1/openapi.json` of the router, which may be older than the client.",
	}
	noSuchMethod = &problemKind{
		code: "method_not_allowed", status: http.StatusMethodNotAllowed, title: "method not allowed",
		cause:  "The path exists, but not with this method.",
		remedy: "See `/api/v1/openapi.json` of the router.",
	}
	invalidRequest = &problemKind{
		code: "invalid_request", status: http.StatusBadRequest, title: "invalid request",
		kinds:  []error{creel.ErrInvalidRequest},
		cause:  "A part of the path, the query or the body is not valid.",
		remedy: "Correct the part that `detail` names.",
	}
	notJSON = &problemKind{
		code: "not_json", status: http.StatusUnsupportedMediaType, title: "not JSON",
		cause:  "A call that makes a change has a body that is not JSON, or does not declare it.",
		remedy: "Send `Content-Type: application/json`, with the body `{}` if the call has no fields.",
	}
	noView = &problemKind{
		code: "no_view", status: http.StatusServiceUnavailable, title: "no view yet",
		cause:  "The router has not read the state store since it started.",
		remedy: "Repeat the call; if it lasts, check `/readyz?verbose` of the router.",
	}
	unavailable = &problemKind{
		code: "unavailable", status: http.StatusServiceUnavailable, title: "unavailable",
		cause:  "A subcluster or the state store does not answer, or is busy.",
		remedy: "Repeat the call after the seconds in `Retry-After`; `creel status` names the missing part.",
	}
	internalError = &problemKind{
		code: "internal", status: http.StatusInternalServerError, title: "internal error",
		cause:  "The router could not write its answer. This is a defect of creel.",
		remedy: "Report it, with the router's log of the request id.",
	}
)

// problemKinds are all kinds of errors, in the order of the page and of the search by error.
var problemKinds = []*problemKind{
	notPermitted, invalidToken, conflict, queueNotFound, subclusterNotFound, applicationNotFound,
	nodeNotFound, containerNotFound, notEnabled, noSuchPath, noSuchMethod, invalidRequest, notJSON, noView, unavailable,
	internalError,
}

// ProblemDoc is an error of the native API (RFC 9457).
type ProblemDoc struct {
	Type      string `json:"type"` // the page of Code
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// problem writes an error of the native API.
func problem(w http.ResponseWriter, kind *problemKind, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(kind.status)
	json.NewEncoder(w).Encode(ProblemDoc{
		Type: problemPage + "#" + kind.code, Title: kind.title, Status: kind.status, Detail: detail, Code: kind.code,
		RequestID: w.Header().Get(requestHeader),
	}) // an error means that the client has gone
}

// problemOf writes an error of the native API by the error's kind.
func problemOf(w http.ResponseWriter, err error) {
	var full *creel.Error
	if errors.As(err, &full) && full.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(full.RetryAfter.Seconds())))))
	}
	problem(w, kindOf(err), err.Error())
}

// kindOf returns the kind of an error, unavailable if it is of no kind of the table.
func kindOf(err error) *problemKind {
	for _, p := range problemKinds {
		for _, kind := range p.kinds {
			if errors.Is(err, kind) {
				return p
			}
		}
	}
	return unavailable
}

// answer writes a document of the native API.
func answer(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		problem(w, internalError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(b, '\n'))
}

// requestHeader identifies one request in answers, logs of audit and calls to members.
const requestHeader = "X-Request-Id"

// requestID matches the ids that a client may choose. Other ids could forge lines of a log.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

// identified adds an id to each request, the client's if it sent a usable one, and returns it in the answer's header.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !requestID.MatchString(r.Header.Get(requestHeader)) {
			r.Header.Set(requestHeader, rand.Text())
		}
		w.Header().Set(requestHeader, r.Header.Get(requestHeader))
		next.ServeHTTP(w, r)
	})
}
