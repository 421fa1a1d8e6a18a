// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// changeOf reads a call that changes an application. answer is the document for the case that the change must wait
// for home. If it cannot read the call, ok is false, and home will reject the call.
func changeOf(r *http.Request, app creel.ApplicationID, q *request) (i intents.Intent, answer any, ok bool) {
	i = intents.Intent{Application: app, User: caller(r), REST: true}
	if q.method != http.MethodPut {
		return i, nil, false
	}
	b := q.body
	switch path.Base(r.URL.Path) {
	case "state":
		i.Verb, i.Diagnostics = intents.Kill, "Application killed by user "+i.User
		return i, map[string]string{"state": "KILLING"}, element(b, "state") == "KILLED"
	case "queue":
		i.Verb, i.Queue = intents.Move, element(b, "queue")
		return i, map[string]string{"queue": i.Queue}, i.Queue != ""
	case "priority":
		level, err := strconv.ParseInt(element(b, "priority"), 10, 32)
		i.Verb, i.Level = intents.Priority, int32(level)
		return i, map[string]int32{"priority": i.Level}, err == nil
	case "timeout":
		if t := rawjson.Get(b, "timeout"); t != nil {
			b = t
		}
		kind, at := element(b, "type"), element(b, "expiryTime")
		i.Verb, i.Expiry = intents.Timeouts, map[string]string{kind: at}
		doc := map[string]map[string]string{"timeout": {"type": kind, "expiryTime": at}}
		return i, doc, kind != "" && at != ""
	}
	return i, nil, false
}

// element returns the text of a field of a small document, in JSON or XML.
func element(body []byte, name string) string {
	if v := rawjson.Get(body, name); v != nil {
		return rawjson.Text(v)
	}
	_, after, _ := strings.Cut(string(body), "<"+name+">")
	value, _, closed := strings.Cut(after, "</"+name+">")
	if !closed {
		return ""
	}
	return strings.TrimSpace(value)
}

// writeKept answers a queued call with 202 (Accepted) and YARN's document. A ResourceManager also answers a kill with
// 202, so headers show that the call is queued, and for which members.
func writeKept(w http.ResponseWriter, r *http.Request, kept *server.PendingChange, body []byte) {
	w.Header().Set("X-Kept", "true")
	for _, id := range kept.For {
		w.Header().Add("X-Kept-For-SubClusters", string(id))
	}
	write(w, r, http.StatusAccepted, body)
}

// change applies a change at home and in every member with a part of the application. If home does not answer, the
// change is recorded, and the answer is 202 (Accepted).
func (h *Handler) change(w http.ResponseWriter, r *http.Request, i intents.Intent, q *request, doc any) {
	answer, kept, err := server.Change(r.Context(), h.server, i,
		func(ctx context.Context, m *remote.Member, app creel.ApplicationID) (reply, error) {
			return q.under(i.Application, app).at(ctx, m)
		})
	switch {
	case err != nil:
		fail(w, r, notFoundText(err, i.Application))
	case kept != nil:
		body, err := json.Marshal(doc)
		if err != nil {
			fail(w, r, err)
			return
		}
		writeKept(w, r, kept, body)
	default:
		pass(w, r, answer)
	}
}
