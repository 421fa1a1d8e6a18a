// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// change is the codec of a call that changes an application. It sets the intent from the call's body. kept is the
// document for the case that the change must wait for home. If it cannot read the body, ok is false, and home rejects
// the call.
type change func(body []byte, i *intents.Intent) (kept any, ok bool)

func readKill(body []byte, i *intents.Intent) (kept any, ok bool) {
	i.Verb, i.Diagnostics = intents.Kill, "Application killed by user "+i.User
	return map[string]string{"state": "KILLING"}, element(body, "state") == "KILLED"
}

func readMove(body []byte, i *intents.Intent) (kept any, ok bool) {
	i.Verb, i.Queue = intents.Move, element(body, "queue")
	return map[string]string{"queue": i.Queue}, i.Queue != ""
}

func readPriority(body []byte, i *intents.Intent) (kept any, ok bool) {
	level, err := strconv.ParseInt(element(body, "priority"), 10, 32)
	i.Verb, i.Level = intents.Priority, int32(level)
	return map[string]int32{"priority": i.Level}, err == nil
}

func readTimeout(body []byte, i *intents.Intent) (kept any, ok bool) {
	if t := rawjson.Get(body, "timeout"); t != nil {
		body = t
	}
	kind, at := element(body, "type"), element(body, "expiryTime")
	i.Verb, i.Expiry = intents.Timeouts, map[string]string{kind: at}
	return map[string]map[string]string{"timeout": {"type": kind, "expiryTime": at}}, kind != "" && at != ""
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

// changing returns the handler of a change. It is applied at home and in every member with a part of the application.
// If home does not answer, the change is recorded, and the answer is 202 (Accepted).
func changing(read change) serve {
	return func(h *Handler, w http.ResponseWriter, r *http.Request) {
		app, q, ok := aboutApp(w, r)
		if !ok {
			return
		}
		i := intents.Intent{Application: app, User: q.user, REST: true}
		doc, ok := read(q.body, &i)
		if !ok {
			h.atHome(w, r, app, q)
			return
		}
		answer, kept, err := server.Change(r.Context(), h.server, i,
			func(ctx context.Context, m *remote.Member, id creel.ApplicationID) (reply, error) {
				return q.under(app, id).at(ctx, m)
			})
		switch {
		case err != nil:
			fail(w, r, notFoundText(err, app))
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
}
