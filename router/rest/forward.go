// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/internal/units"
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
			at = "http://" + r.Host + at[i:]
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

// home forwards a call about one application. A change goes to all its parts, and is queued while its home is
// unavailable.
func (h *Handler) home(w http.ResponseWriter, r *http.Request) {
	app, q, ok := aboutApp(w, r)
	if !ok {
		return
	}
	if i, doc, ok := changeOf(r, app, q); ok {
		h.change(w, r, i, q, doc)
		return
	}
	h.atHome(w, r, app, q)
}

func (h *Handler) atHome(w http.ResponseWriter, r *http.Request, app creel.ApplicationID, q *request) {
	answer, _, err := server.AtHome(r.Context(), h.server, app, q.at)
	if err != nil {
		fail(w, r, notFoundText(err, app))
		return
	}
	pass(w, r, answer)
}

// report asks home for an application's document. While home does not answer, the user gets the last document that
// went through this router, marked as old.
func (h *Handler) report(w http.ResponseWriter, r *http.Request) {
	app, q, ok := aboutApp(w, r)
	if !ok {
		return
	}
	if q.method != http.MethodGet {
		h.atHome(w, r, app, q)
		return
	}
	answer, home, err := server.AtHome(r.Context(), h.server, app, q.at)
	switch {
	case err == nil:
		if doc := h.withUAMs(w, r, app, home.ID, answer); doc != nil {
			h.server.Saw(app, q.user, server.REST, doc)
			write(w, r, http.StatusOK, doc)
			return
		}
		answer.body = ofFederation(answer.body, h.server.Share(home.ID))
		kind := answer.head.Get("Content-Type")
		if strings.HasPrefix(kind, "application/json") && answer.status == http.StatusOK {
			h.server.Saw(app, q.user, server.REST, answer.body)
		}
		pass(w, r, answer)
		return
	case errors.Is(err, creel.ErrUnavailable):
		if last, age, ok := h.server.Seen(app, q.user, server.REST); ok {
			if doc, ok := withDiagnostics(last, server.AsOf(age, err)); ok {
				old := router.MissingMember{Reason: fmt.Sprintf("its last report is %s old", units.Age(age.Seconds()))}
				if home != nil {
					old.Member = home.ID
				} else {
					old.Member, _ = h.server.HomeSeen(app)
				}
				w.Header().Set("X-Last-Known-SubClusters", oneLine(old.String()))
				write(w, r, http.StatusOK, doc)
				return
			}
		}
	}
	fail(w, r, notFoundText(err, app))
}

// asksUAMs reports whether an application's UAMs must be asked for its report: it is running, or it has ended and
// nodes aggregate logs. Otherwise UAMs would not change the report.
func asksUAMs(report []byte) (asked, ended bool) {
	state, err := creel.ParseApplicationState(textIn(report, "state"))
	logs := creel.ParseLogAggregationStatus(textIn(report, "logAggregationStatus"))
	ended = err == nil && state.Ended()
	return state == creel.AppRunning || ended && logs > creel.LogDisabled, ended
}

// textIn returns the text of a field's first occurrence in a JSON or XML document, "" if there is none.
func textIn(doc []byte, name string) string {
	before, after := `"`+name+`":"`, `"`
	if len(doc) > 0 && doc[0] == '<' {
		before, after = "<"+name+">", "<"
	}
	if _, rest, ok := bytes.Cut(doc, []byte(before)); ok {
		text, _, _ := bytes.Cut(rest, []byte(after))
		return string(text)
	}
	return ""
}

// withUAMs returns the report of an application merged with its UAMs' reports, as in lists; nil if it has none.
// answer is home's.
func (h *Handler) withUAMs(
	w http.ResponseWriter, r *http.Request, app creel.ApplicationID, home creel.SubclusterID, answer reply,
) []byte {
	asked, ended := asksUAMs(answer.body)
	if answer.status != http.StatusOK || !asked {
		return nil
	}
	user, head := caller(r), forwardHeaders(r, "application/json")
	get := func(ctx context.Context, m *remote.Member, id creel.ApplicationID) ([]byte, error) {
		doc, _, err := m.Web(ctx, remote.Read, http.MethodGet, appPath(id)+"?"+r.URL.RawQuery, user, head, nil)
		return rawjson.Get(doc, "app"), err
	}
	uams := server.AskUAMs(r.Context(), h.server, server.Application{ID: app, Home: home, Ended: ended}, get, notFound)
	if len(uams) == 0 {
		return nil
	}
	own := rawjson.Get(answer.body, "app")
	if own == nil { // the client asked for XML
		m, err := h.server.Member(home)
		if err != nil {
			return nil
		}
		if own, err = get(r.Context(), m, app); err != nil {
			return nil
		}
	}
	same := []router.Part[[]byte]{{Member: home, Value: own}}
	var missing []router.MissingMember
	for _, p := range uams {
		switch {
		case p.Err == nil && ended && !isUAM(p.Value): // another application with the same id
		case p.Err == nil && p.Value != nil:
			same = append(same, p)
		default:
			missing = append(missing, router.MissingMember{Member: p.Member, Reason: fmt.Sprint(p.Err)})
		}
	}
	for i, p := range same {
		same[i].Value = underApplication(ofFederation(p.Value, h.server.Share(p.Member)))
	}
	tellMissing(w, missing)
	if len(same) == 1 && len(missing) == 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"app":%s}`, h.appFields().Join(same))
}

// appPath returns the path of an application's report.
func appPath(id creel.ApplicationID) string { return base + "/apps/" + id.String() }

// withDiagnostics adds a text before the diagnostics in an application's document.
func withDiagnostics(doc []byte, words string) ([]byte, bool) {
	var outer, inner map[string]json.RawMessage
	if json.Unmarshal(doc, &outer) != nil || json.Unmarshal(outer["app"], &inner) != nil {
		return nil, false
	}
	said := rawjson.Text(inner["diagnostics"])
	var err error
	if inner["diagnostics"], err = json.Marshal(words + said); err == nil {
		if outer["app"], err = json.Marshal(inner); err == nil {
			doc, err = json.Marshal(outer)
		}
	}
	return doc, err == nil
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
	answer, err := server.Any(r.Context(), h.server, func(ctx context.Context, m *remote.Member) (reply, error) {
		answer, err := q.at(ctx, m)
		return answer, server.OfNoPlan(err)
	})
	if err != nil {
		fail(w, r, err)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/apps/new-application") {
		if id, err := creel.ParseApplicationID(string(applicationID.Find(answer.body))); err == nil {
			h.server.Gave(id, 1, "")
		}
	}
	pass(w, r, answer)
}

// applicationID matches an application id in an answer of any format.
var applicationID = regexp.MustCompile(`application_\d+_\d+`)

// namedOr forwards to the member that the call names in its query, or else to all.
func (h *Handler) namedOr(all http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("subClusterId") {
			h.named(w, r)
			return
		}
		all(w, r)
	}
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

// atNode forwards a call about a node to the member that has it, and a change to all members concerned. If the path
// has no node, the query may have one, or name the member.
func (h *Handler) atNode(w http.ResponseWriter, r *http.Request) {
	node := cmp.Or(pathParam(r, "nodeId"), r.URL.Query().Get("nodeId"))
	if node == "" {
		h.named(w, r)
		return
	}
	q, err := read(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	look := &request{method: http.MethodGet, user: q.user, head: forwardHeaders(r, "application/json")}
	id := creel.NodeID{Host: node}
	if full, err := creel.ParseNodeID(node); err == nil {
		id = full
	}
	labels := strings.HasSuffix(r.URL.Path, "/replace-labels")
	parts := server.Ask(r.Context(), h.server, func(ctx context.Context, m *remote.Member) (bool, error) {
		has, err := look.hasNode(ctx, m, node)
		if labels && err == nil && !has {
			return look.hasLabels(ctx, m, id)
		}
		return has, err
	})
	if q.method != http.MethodGet {
		h.orderNode(w, r, q, id, parts)
		return
	}
	for _, p := range parts {
		if p.Err != nil || !p.Value {
			continue
		}
		m, err := h.server.Member(p.Member)
		if err == nil {
			var answer reply
			if answer, err = q.at(r.Context(), m); err == nil {
				pass(w, r, answer)
				return
			}
		}
		fail(w, r, err)
		return
	}
	if _, silent := router.ForNode(id, parts); len(silent) > 0 {
		tellMissing(w, silent)
		fail(w, r, router.NodeUnknown(node, silent))
		return
	}
	h.forwardAny(w, r, q) // any member rejects an unknown node
}

// orderNode forwards a change of a node to the members concerned.
func (h *Handler) orderNode(
	w http.ResponseWriter, r *http.Request, q *request, node creel.NodeID, has []router.Part[bool],
) {
	members, silent := router.ForNode(node, has)
	if len(silent) > 0 {
		tellMissing(w, silent)
		fail(w, r, router.NodeUnknown(node.String(), silent))
		return
	}
	concerned := func(id creel.SubclusterID) bool { return slices.Contains(members, id) }
	parts := server.AskSome(r.Context(), h.server, concerned, q.at)
	if len(parts) == 0 {
		partial(w, r, parts) // there are no members
		return
	}
	if err := server.CarriedOut("the change of "+node.String(), parts); err != nil {
		fail(w, r, err)
		return
	}
	pass(w, r, parts[0].Value)
}

// hasLabels reports whether a member stores labels of a node, even if it does not have the node.
func (q *request) hasLabels(ctx context.Context, m *remote.Member, node creel.NodeID) (bool, error) {
	look := *q
	look.path = base + "/get-node-to-labels"
	answer, err := look.at(ctx, m)
	if err != nil {
		return false, err
	}
	list, err := rawjson.ListAt(answer.body, "nodeToLabels", "entry")
	return slices.ContainsFunc(list, func(entry []byte) bool {
		id, err := creel.ParseNodeID(rawjson.Text(rawjson.Get(entry, "key")))
		return err == nil && (id == node || node.Port == 0 && id.Host == node.Host)
	}), err
}

// hasNode reports whether a member has a node. Without a port, or with port 0, any node of the host counts, as in
// YARN's documents with a node's name.
func (q *request) hasNode(ctx context.Context, m *remote.Member, node string) (bool, error) {
	look := *q
	host, port, _ := strings.Cut(node, ":")
	if port != "" && port != "0" {
		look.path = base + "/nodes/" + url.PathEscape(node)
		_, err := look.at(ctx, m)
		if notFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	look.path = base + "/nodes"
	answer, err := look.at(ctx, m)
	if err != nil {
		return false, err
	}
	list, err := rawjson.ListAt(answer.body, "nodes", "node")
	return slices.ContainsFunc(list, func(n []byte) bool {
		return rawjson.Text(rawjson.Get(n, "nodeHostName")) == host
	}), err
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
