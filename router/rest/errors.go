// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// exception is the form of an error of one kind in YARN's web services.
type exception struct {
	kind   error
	status int
	class  string
	prefix string // prefix that Java adds to the message of a wrapped cause
}

var exceptions = []exception{
	{
		creel.ErrApplicationNotFound,
		http.StatusNotFound,
		"org.apache.hadoop.yarn.webapp.NotFoundException",
		"java.lang.Exception: ",
	},
	{
		creel.ErrAttemptNotFound,
		http.StatusNotFound,
		"org.apache.hadoop.yarn.webapp.NotFoundException",
		"java.lang.Exception: ",
	},
	{
		creel.ErrContainerNotFound,
		http.StatusNotFound,
		"org.apache.hadoop.yarn.webapp.NotFoundException",
		"java.lang.Exception: ",
	},
	{
		creel.ErrNodeNotFound,
		http.StatusNotFound,
		"org.apache.hadoop.yarn.webapp.NotFoundException",
		"java.lang.Exception: ",
	},
	{creel.ErrSubclusterNotFound, http.StatusNotFound, "org.apache.hadoop.yarn.webapp.NotFoundException", ""},
	{remote.ErrNotInRelease, http.StatusNotFound, "org.apache.hadoop.yarn.webapp.NotFoundException", ""},
	{creel.ErrQueueNotFound, http.StatusBadRequest, "org.apache.hadoop.yarn.webapp.BadRequestException", ""},
	{creel.ErrEnded, http.StatusConflict, "org.apache.hadoop.yarn.webapp.BadRequestException", ""},
	{webdoc.ErrMediaType, http.StatusUnsupportedMediaType, "javax.ws.rs.WebApplicationException", ""},
	{creel.ErrInvalidRequest, http.StatusBadRequest, "org.apache.hadoop.yarn.webapp.BadRequestException", ""},
	{creel.ErrInvalidResource, http.StatusBadRequest, "org.apache.hadoop.yarn.webapp.BadRequestException", ""},
	{creel.ErrInvalidToken, http.StatusBadRequest, "org.apache.hadoop.yarn.webapp.BadRequestException", ""},
	{creel.ErrNotPermitted, http.StatusForbidden, "org.apache.hadoop.yarn.webapp.ForbiddenException", ""},
	{creel.ErrUnavailable, http.StatusServiceUnavailable, "org.apache.hadoop.yarn.exceptions.YarnException", ""},
	{creel.ErrNoSubcluster, http.StatusServiceUnavailable, "org.apache.hadoop.yarn.exceptions.YarnException", ""},
}

// fail writes an error in YARN's form. A member's error answer passes through.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	var answered *remote.StatusError
	if errors.As(err, &answered) {
		ct := answered.Header.Get("Content-Type")
		if webdoc.PrefersXML(r) && strings.Contains(ct, "json") && bytes.HasPrefix(answered.Body, []byte("{")) {
			write(w, r, answered.Code, answered.Body) // merged calls ask members for JSON
			return
		}
		if ct != "" {
			w.Header().Set("Content-Type", ct)
		}
		w.WriteHeader(answered.Code)
		w.Write(answered.Body) // an error means that the client has gone
		return
	}
	e := exception{status: http.StatusServiceUnavailable, class: "org.apache.hadoop.yarn.exceptions.YarnException"}
	for _, x := range exceptions {
		if errors.Is(err, x.kind) {
			e = x
			break
		}
	}
	var full *creel.Error
	if errors.As(err, &full) && full.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(full.RetryAfter.Seconds())))))
	} else if e.kind == creel.ErrUnavailable {
		w.Header().Set("Retry-After", "1") // for joined errors, and members that do not answer
	}
	refuse(w, r, e.status, e.class, e.prefix+err.Error())
}

// refuse writes a RemoteException.
func refuse(w http.ResponseWriter, r *http.Request, status int, class, message string) {
	type body struct {
		Exception     string `json:"exception"`
		Message       string `json:"message"`
		JavaClassName string `json:"javaClassName"`
	}
	doc, err := json.Marshal(
		map[string]body{"RemoteException": {class[strings.LastIndexByte(class, '.')+1:], message, class}},
	)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, r, status, doc)
}

// wrongMethod answers with 503, as YARN's web services do; 405 would be right.
func wrongMethod(w http.ResponseWriter, r *http.Request) {
	refuse(
		w,
		r,
		http.StatusServiceUnavailable,
		"javax.ws.rs.WebApplicationException",
		r.Method+" is not a method of "+r.URL.Path,
	)
}

// write sends a JSON document, converted to XML for clients that ask for XML.
func write(w http.ResponseWriter, r *http.Request, status int, doc []byte) {
	if webdoc.PrefersXML(r) {
		w.Header().Set("Content-Type", "application/xml; charset=utf-8")
		w.WriteHeader(status)
		toXML(w, doc) // an error means that the client has gone, or was found when doc was made
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(doc)))
	w.WriteHeader(status)
	w.Write(doc) // an error means that the client has gone
}

// writeList answers with the list made of members' parts. If members just sent their parts, a JSON list is written
// part by part, without a copy of the whole.
func (h *Handler) writeList(w http.ResponseWriter, r *http.Request, of []router.Part[items], made func() rawjson.List) {
	encoded := func() server.Made[[][]byte] { return madeOf(made()) }
	whole, err := h.yarn.long.Whole(r.Context(), listQuestion(r), of, encoded)
	switch {
	case err != nil:
		fail(w, r, err)
	case whole != nil:
		write(w, r, http.StatusOK, whole)
	case webdoc.PrefersXML(r):
		l := made()
		write(w, r, http.StatusOK, l.Append(make([]byte, 0, l.Len())))
	default:
		l := made()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(l.Len()))
		w.WriteHeader(http.StatusOK)
		l.WriteTo(w) // an error means that the client has gone
	}
}

// madeOf encodes a list, and lets the parts that it was made of point into it.
func madeOf(l rawjson.List) server.Made[[][]byte] {
	doc := l.Append(make([]byte, 0, l.Len()))
	if l.After != nil { // its items are not those of the parts
		return server.Made[[][]byte]{Whole: doc}
	}
	copies := make(server.Copies, len(l.Items))
	for i, place := range l.Places(doc) {
		copies.Add(l.Items[i], place)
	}
	return server.Made[[][]byte]{Whole: doc, Share: func(part [][]byte) (shared [][]byte, own int) {
		shared = make([][]byte, len(part))
		for i, item := range part {
			var n int
			shared[i], n = copies.Of(item)
			own += n
		}
		return shared, own
	}}
}
