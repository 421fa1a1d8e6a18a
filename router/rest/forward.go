// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
)

// maxBody bounds a request. The largest are submission contexts with credentials.
const maxBody = 16 << 20

// request is a client's call in the form in which it is forwarded to members.
type request struct {
	method, path, user string
	head               http.Header
	body               []byte
	doc                webdoc.Body // of body
}

// read reads a call. It replaces HEAD by GET, since not all members answer HEAD; net/http does not send the body to
// the client.
func read(w http.ResponseWriter, r *http.Request) (*request, error) {
	b, err := webdoc.Read(w, r, maxBody)
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the request is too large",
			Why:  "its body is longer than 16 MiB",
			Try:  "put files into the file system and name them as local resources",
		}
	}
	var known *creel.Error
	if errors.As(err, &known) {
		return nil, err
	}
	if err != nil {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "request body truncated",
			Why:  err.Error(),
		}
	}
	q := &request{
		method: r.Method, path: r.URL.RequestURI(), user: caller(r), head: forwardHeaders(r, ""), body: b.Text, doc: b,
	}
	if kind := b.Kind.ContentType(); kind != "" { // the text has another charset now
		q.head.Set("Content-Type", kind)
	}
	if q.method == http.MethodHead {
		q.method = http.MethodGet
	}
	return q, nil
}

// reply is a member's answer.
type reply struct {
	status int
	head   http.Header
	body   []byte
}

// at sends the call to a member.
func (q *request) at(ctx context.Context, m *remote.Member) (reply, error) {
	kind := remote.Write
	if q.method == http.MethodGet {
		kind = remote.Read
	}
	body, head, err := m.Web(ctx, kind, q.method, q.path, q.user, q.head, q.body)
	status, convErr := strconv.Atoi(head.Get(remote.StatusHeader))
	if convErr != nil {
		status = http.StatusOK
	}
	return reply{status, head, body}, err
}

// under returns the call for a member in which the application has another id.
func (q *request) under(app, id creel.ApplicationID) *request {
	if app == id {
		return q
	}
	other := *q
	other.path = strings.Replace(q.path, app.String(), id.String(), 1)
	return &other
}

// caller returns the calling user: user.name, which is the owner of an accepted token, or the static user of a
// cluster without authentication.
func caller(r *http.Request) string {
	q := r.URL.Query()
	for name, values := range q {
		if strings.EqualFold(name, "doAs") && len(values) > 0 && values[0] != "" {
			return values[0]
		}
	}
	return q.Get("user.name")
}

// userinfo answers with the user that runs this router, and the caller.
func (h *Handler) userinfo(w http.ResponseWriter, r *http.Request) {
	doc, err := json.Marshal(struct {
		Login string `json:"rmLoginUser"`
		User  string `json:"requestedUser"`
	}{h.conf.LoginUser, cmp.Or(caller(r), h.conf.StaticUser)})
	if err != nil {
		fail(w, r, err)
		return
	}
	write(w, r, http.StatusOK, rooted(r, doc, "clusterUserInfo"))
}

// clientAddress returns the caller's address without the port.
func clientAddress(r *http.Request) string {
	return r.RemoteAddr[:max(0, strings.LastIndexByte(r.RemoteAddr, ':'))]
}

// forwardHeaders returns the headers for a call to a member.
func forwardHeaders(r *http.Request, accept string) http.Header {
	h := http.Header{subcluster.RouterHeader: {"1"}}
	for _, name := range []string{
		"Accept", "Content-Type", "X-Xsrf-Header", "Traceparent", "Tracestate", "X-Request-Id", "User-Agent",
	} {
		if v := r.Header.Values(name); v != nil {
			h[name] = v
		}
	}
	if accept != "" {
		h.Set("Accept", accept)
	}
	if from := clientAddress(r); from != "" {
		h.Set("X-Forwarded-For", from)
	}
	return h
}

// pass writes a member's answer to the client, with its Location changed to this router.
func pass(w http.ResponseWriter, r *http.Request, answer reply) {
	for _, name := range []string{"Content-Type", "Cache-Control", "Vary"} {
		if v := answer.head.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	if at := answer.head.Get("Location"); at != "" {
		if i := strings.Index(at, base); i >= 0 {
			at = webdoc.Origin(r) + at[i:]
		}
		w.Header().Set("Location", at)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(answer.body)))
	w.WriteHeader(answer.status)
	w.Write(answer.body) // an error means that the client has gone
}

// appID reads the application id in a path; errors have YARN's texts.
func appID(r *http.Request) (creel.ApplicationID, error) {
	text := chi.URLParam(r, "appid")
	app, err := creel.ParseApplicationID(text)
	if err != nil {
		return app, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "java.lang.IllegalArgumentException: Invalid ApplicationId: " + strings.TrimSpace(text),
		}
	}
	return app, nil
}

// notFoundText replaces the error for an unknown application by a ResourceManager's text.
func notFoundText(err error, app creel.ApplicationID) error {
	if errors.Is(err, creel.ErrApplicationNotFound) {
		return &creel.Error{Kind: creel.ErrApplicationNotFound, What: "app with id: " + app.String() + " not found"}
	}
	return err
}

// aboutApp reads a call about one application. If it returns false, it has written an error.
func aboutApp(w http.ResponseWriter, r *http.Request) (creel.ApplicationID, *request, bool) {
	app, err := appID(r)
	if err != nil {
		fail(w, r, err)
		return app, nil, false
	}
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return app, nil, false
	}
	return app, q, true
}

// home forwards a call about one application.
func (h *Handler) home(w http.ResponseWriter, r *http.Request) {
	if app, q, ok := aboutApp(w, r); ok {
		h.atHome(w, r, app, q)
	}
}

func (h *Handler) atHome(w http.ResponseWriter, r *http.Request, app creel.ApplicationID, q *request) {
	answer, _, err := server.AtHome(r.Context(), h.server, app, q.at)
	if err != nil {
		fail(w, r, notFoundText(err, app))
		return
	}
	pass(w, r, answer)
}

// signal sends a signal to the member that runs the container; it tries home first. If a member does not answer, the
// signal is recorded, and the answer is 202 (Accepted).
func (h *Handler) signal(w http.ResponseWriter, r *http.Request) {
	id, err := creel.ParseContainerID(chi.URLParam(r, "containerid"))
	if err != nil {
		fail(w, r, err)
		return
	}
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	name := strings.ToUpper(chi.URLParam(r, "command"))
	command, known := creel.SignalCommand(name)
	if !known { // home rejects it
		h.atHome(w, r, id.Attempt.Application, q)
		return
	}
	answer, kept, err := server.Signal(r.Context(), h.server, intents.Intent{
		Application: id.Attempt.Application, Verb: intents.Signal, User: q.user, Container: id, Command: command,
		REST: true,
	}, q.at)
	switch {
	case err != nil:
		fail(w, r, notFoundText(err, id.Attempt.Application))
	case kept != nil:
		writeKept(w, r, kept, fmt.Appendf(nil, `{"signal":%q}`, name))
	default:
		pass(w, r, answer)
	}
}

// anyone forwards a call to any member: a new id, or data that is the same in all members.
func (h *Handler) anyone(w http.ResponseWriter, r *http.Request) {
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	h.forwardAny(w, r, q)
}

// forwardAny does the work of anyone for a call that has been read.
func (h *Handler) forwardAny(w http.ResponseWriter, r *http.Request, q *request) {
	answer, err := server.Any(r.Context(), h.server, q.planned)
	passOr(w, r, answer, err)
}

// planned sends the call to a member that may have no reservations.
func (q *request) planned(ctx context.Context, m *remote.Member) (reply, error) {
	answer, err := q.at(ctx, m)
	return answer, server.OfNoPlan(err)
}

// newApplication forwards a request for an application id to any member.
func (h *Handler) newApplication(w http.ResponseWriter, r *http.Request) {
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	answer, err := server.Any(r.Context(), h.server, q.at)
	if id, wrong := creel.ParseApplicationID(string(applicationID.Find(answer.body))); err == nil && wrong == nil {
		h.server.Gave(id, 1, "")
	}
	passOr(w, r, answer, err)
}

// applicationID matches an application id in an answer of any format.
var applicationID = regexp.MustCompile(`application_\d+_\d+`)

// bulkActivities forwards to the member that the call names in its query, or else merges the answers of all.
func (h *Handler) bulkActivities(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("subClusterId") {
		h.named(w, r)
		return
	}
	h.merged("bulk activities document")(w, r)
}

// named forwards to the member that the call names in its query or body, such as a change of one scheduler's
// configuration.
func (h *Handler) named(w http.ResponseWriter, r *http.Request) {
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	id := r.URL.Query().Get("subClusterId")
	if id == "" {
		id = subclusterOf(q.body)
	}
	if id == "" {
		fail(w, r, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the call names no subcluster",
			Why:  "it is about one member's scheduler",
			Try:  "set subClusterId in its query",
		})
		return
	}
	if _, known := h.server.View().Member(creel.SubclusterID(id)); !known {
		fail(w, r, &creel.Error{
			Kind: creel.ErrSubclusterNotFound,
			What: "there is no subcluster " + strconv.Quote(id),
			Try:  "see `creel subcluster list`",
		})
		return
	}
	m, err := h.server.Member(creel.SubclusterID(id))
	if err == nil {
		var answer reply
		if answer, err = q.at(r.Context(), m); err == nil {
			pass(w, r, answer)
			return
		}
	}
	fail(w, r, err)
}

// subclusterOf returns the subClusterId in a JSON or XML body, "" if there is none.
func subclusterOf(body []byte) string {
	if v := rawjson.Get(body, "subClusterId"); v != nil {
		return rawjson.Text(v)
	}
	if v := rawjson.Get(rawjson.Get(body, "sched-conf"), "subClusterId"); v != nil {
		return rawjson.Text(v)
	}
	_, after, ok := strings.Cut(string(body), "<subClusterId>")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(after, "<")
	return strings.TrimSpace(id)
}

// noNode answers that no member has a node, or that this is unknown while members do not answer.
func noNode[T any](w http.ResponseWriter, r *http.Request, node string, parts []router.Part[T]) {
	var silent []router.MissingMember
	for _, p := range parts {
		if errors.Is(p.Err, creel.ErrUnavailable) {
			silent = append(silent, router.MissingMember{Member: p.Member, Reason: p.Err.Error()})
		}
	}
	if len(silent) > 0 {
		tellMissing(w, silent)
		fail(w, r, router.NodeUnknown(node, silent))
		return
	}
	if partial(w, r, parts) {
		fail(w, r, &creel.Error{Kind: creel.ErrNodeNotFound, What: "nodeId, " + node + ", is not found"})
	}
}

// everywhere sends a change to every member, and answers with the text of Hadoop's router about the members that
// accepted it. It is an error if none did.
func (h *Handler) everywhere(w http.ResponseWriter, r *http.Request) {
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	parts := server.Ask(r.Context(), h.server, q.at)
	if !partial(w, r, parts) {
		return
	}
	text := ""
	for _, p := range parts {
		word := "SUCCESS"
		if p.Err != nil {
			word = "FAILED"
		}
		text += "SubCluster-" + string(p.Member) + ":" + word + ","
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, text) // an error means that the client has gone
}

// askJSON gets one document from every member, as JSON.
func (h *Handler) askJSON(r *http.Request, kind remote.Kind) []router.Part[[]byte] {
	return askEach(h, r, kind, func(_ creel.SubclusterID, doc []byte) ([]byte, error) { return doc, nil })
}

// askEach asks all members concurrently and applies made to the JSON document of each.
func askEach[T any](
	h *Handler, r *http.Request, kind remote.Kind, made func(member creel.SubclusterID, doc []byte) (T, error),
) []router.Part[T] {
	head, path, user := forwardHeaders(r, "application/json"), r.URL.RequestURI(), caller(r)
	return server.Ask(r.Context(), h.server, func(ctx context.Context, m *remote.Member) (out T, err error) {
		doc, _, err := m.Web(ctx, kind, http.MethodGet, path, user, head, nil)
		if err != nil {
			return out, err
		}
		return made(m.ID, doc)
	})
}

// tellMissing writes headers with the members whose part of an answer is missing.
func tellMissing(w http.ResponseWriter, missing []router.MissingMember) {
	if len(missing) > 0 {
		w.Header().Set("X-Partial-Result", "true")
		w.Header().Set("X-Missing-SubClusters", oneLine(router.MissingText(missing)))
	}
}

// partial writes headers with the missing members. If no member answered, it writes an error and returns false. The
// error is a rejection if there is one, or that no member's release has the call.
func partial[T any](w http.ResponseWriter, r *http.Request, parts []router.Part[T]) bool {
	if err := r.Context().Err(); err != nil {
		fail(w, r, err) // the client has gone, so nothing is merged
		return false
	}
	present, missing := router.Present(parts)
	tellMissing(w, missing)
	if len(present) > 0 {
		return true
	}
	if refused := refusedBy(parts); refused != nil {
		fail(w, r, refused)
		return false
	}
	if err, ok := server.InNoRelease(parts); ok {
		fail(w, r, err)
		return false
	}
	fail(
		w,
		r,
		&creel.Error{
			Kind:       creel.ErrUnavailable,
			What:       "no subcluster answered",
			Why:        router.MissingText(missing),
			Try:        "try again in a moment",
			RetryAfter: time.Second,
		},
	)
	return false
}

// refusedBy returns the first rejection among parts; a 404 only if there is no other rejection.
func refusedBy[T any](parts []router.Part[T]) (first *remote.StatusError) {
	for _, p := range parts {
		var refused *remote.StatusError
		if errors.As(p.Err, &refused) && (first == nil || first.Code == http.StatusNotFound) {
			first = refused
		}
	}
	return first
}

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), 1000)]
}
