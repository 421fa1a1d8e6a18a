// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/gateway"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// maxBody bounds a request: a submission context with its credentials.
const maxBody = 16 << 20

// base of YARN's documents.
const base = "/ws/v1/cluster"

// Door serves the router's documents over a gateway.
type Door struct {
	gate    *gateway.Gateway
	started time.Time
}

// New makes the door; started is told as the age of this router.
func New(g *gateway.Gateway, started time.Time) *Door { return &Door{gate: g, started: started} }

// Mount puts the door's routes on r.
func (d *Door) Mount(r chi.Router) {
	r.Route(base, func(r chi.Router) {
		r.Use(middleware.StripSlashes)
		for _, doc := range router.Documents {
			if doc.Protocol == "REST" {
				method, path, _ := strings.Cut(doc.Name, " ")
				if method == "*" {
					r.HandleFunc(path, d.handler(doc))
				} else {
					r.MethodFunc(method, path, d.handler(doc))
				}
			}
		}
		r.NotFound(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
		r.MethodNotAllowed(wrongMethod)
	})
	d.native(r)
}

// handler serves a document by its route; some have a handler of their own.
func (d *Door) handler(doc router.Document) http.HandlerFunc {
	switch doc.Name {
	case "GET /apps":
		return d.apps
	case "GET /nodes":
		return d.nodes
	case "GET /nodes/{nodeId}":
		return d.node
	case "GET /apps/{appid}/appattempts/{attemptid}/containers":
		return d.containers
	case "POST /containers/{containerid}/signal/{command}":
		return d.signal
	}
	switch doc.Route {
	case router.Merged:
		return d.merged(doc.Type)
	case router.AtHome:
		return d.home
	case router.AtHomeAll:
		return d.setState
	case router.AtOwner:
		return d.atNode
	case router.Everywhere:
		return d.everywhere
	case router.Chosen:
		return d.submit
	default:
		return d.anyone
	}
}

// caller is who asks: user.name, or the static user of an open cluster.
func caller(r *http.Request) string {
	q := r.URL.Query()
	for name, values := range q {
		if strings.EqualFold(name, "doAs") && len(values) > 0 && values[0] != "" {
			return values[0]
		}
	}
	return q.Get("user.name")
}

// pathOf is the path and query as they came.
func pathOf(r *http.Request) string { return r.URL.RequestURI() }

// headers that go on to a member.
func forwardHeaders(r *http.Request, accept string) http.Header {
	h := http.Header{}
	for _, name := range []string{"Accept", "Content-Type", "X-Xsrf-Header", "X-Hadoop-Delegation-Token", "Traceparent", "Tracestate", "X-Request-Id", "User-Agent"} {
		if v := r.Header.Values(name); v != nil {
			h[name] = v
		}
	}
	if accept != "" {
		h.Set("Accept", accept)
	}
	if host := r.RemoteAddr; host != "" {
		h.Set("X-Forwarded-For", host[:max(0, strings.LastIndexByte(host, ':'))])
	}
	return h
}

// body reads a request's body within its bound.
func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the request is too large",
			Why:  "its body is longer than 16 MiB",
			Try:  "put files into the file system and name them as local resources",
		}
	}
	return b, err
}

func kindOf(method string) remote.Kind {
	if method == http.MethodGet || method == http.MethodHead {
		return remote.Read
	}
	return remote.Write
}

// pass writes a member's answer on, with its Location pointing here.
func pass(w http.ResponseWriter, r *http.Request, status int, answer []byte, head http.Header) {
	for _, name := range []string{"Content-Type", "Cache-Control", "Vary"} {
		if v := head.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	if at := head.Get("Location"); at != "" {
		if i := strings.Index(at, base); i >= 0 {
			at = "http://" + r.Host + at[i:]
		}
		w.Header().Set("Location", at)
	}
	w.WriteHeader(status)
	w.Write(answer) // an error here is the client's going away
}

// appID reads the application of a path; errors are worded as YARN's.
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

// home forwards a call about one application.
func (d *Door) home(w http.ResponseWriter, r *http.Request) {
	app, err := appID(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	b, err := body(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	answer, head, status, err := d.atHome(r.Context(), r, app, b)
	if err != nil {
		fail(w, r, notFoundText(err, app))
		return
	}
	pass(w, r, status, answer, head)
}

// notFoundText words an unknown application as a ResourceManager does.
func notFoundText(err error, app creel.ApplicationID) error {
	if errors.Is(err, creel.ErrApplicationNotFound) {
		return &creel.Error{Kind: creel.ErrApplicationNotFound, What: "app with id: " + app.String() + " not found"}
	}
	return err
}

// atHome calls the home of an application; one that does not know it (404) may
// have been left, so the store is asked once more.
func (d *Door) atHome(
	ctx context.Context,
	r *http.Request,
	app creel.ApplicationID,
	b []byte,
) ([]byte, http.Header, int, error) {
	home, err := d.gate.Home(ctx, app)
	if err != nil {
		return nil, nil, 0, err
	}
	call := func(m *remote.Member) ([]byte, http.Header, int, error) {
		answer, head, err := m.Web(ctx, kindOf(r.Method), r.Method, pathOf(r), caller(r), forwardHeaders(r, ""), b)
		status := http.StatusOK
		if s, convErr := strconv.Atoi(head.Get(remote.StatusHeader)); convErr == nil {
			status = s
		}
		return answer, head, status, err
	}
	answer, head, status, err := call(home)
	var refused *remote.StatusError
	if errors.As(err, &refused) && refused.Code == http.StatusNotFound {
		d.gate.Forget(app)
		if again, homeErr := d.gate.Home(ctx, app); homeErr == nil && again.ID != home.ID {
			return call(again)
		}
	}
	return answer, head, status, err
}

// anyone forwards to any member: a new id, or what all have alike.
func (d *Door) anyone(w http.ResponseWriter, r *http.Request) {
	b, err := body(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	type reply struct {
		body []byte
		head http.Header
	}
	got, err := gateway.Any(r.Context(), d.gate, func(ctx context.Context, m *remote.Member) (reply, error) {
		answer, head, err := m.Web(ctx, kindOf(r.Method), r.Method, pathOf(r), caller(r), forwardHeaders(r, ""), b)
		return reply{answer, head}, err
	})
	if err != nil {
		fail(w, r, err)
		return
	}
	pass(w, r, http.StatusOK, got.body, got.head)
}

// submission is what the router reads of a submission document, by its JSON
// and XML names.
type submission struct {
	XMLName xml.Name `json:"-" xml:"application-submission-context"`
	ID      string   `json:"application-id" xml:"application-id"`
	Name    string   `json:"application-name" xml:"application-name"`
	Queue   string   `json:"queue" xml:"queue"`
	Type    string   `json:"application-type" xml:"application-type"`
	Label   string   `json:"am-container-node-label-expression" xml:"am-container-node-label-expression"`
	Tags    struct {
		Tag oneOrMany `json:"tag" xml:"tag"`
	} `json:"application-tags" xml:"application-tags"`
	Resource struct {
		Memory loose `json:"memory" xml:"memory"`
		VCores loose `json:"vCores" xml:"vCores"`
	} `json:"resource" xml:"resource"`
}

// oneOrMany reads a list given as an array or as its single element.
type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(o))
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*o = []string{s}
	return nil
}

// loose reads a number that may be quoted; anything else is 0, as in YARN.
type loose int64

func (l *loose) UnmarshalJSON(b []byte) error {
	n, _ := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*l = loose(n)
	return nil
}

// submit reads what a policy may want to know and forwards the document as it
// came, to the home.
func (d *Door) submit(w http.ResponseWriter, r *http.Request) {
	b, err := body(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	var doc submission
	if strings.Contains(r.Header.Get("Content-Type"), "xml") {
		err = xml.NewDecoder(bytes.NewReader(b)).Decode(&doc)
	} else {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		fail(
			w,
			r,
			&creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "the submission cannot be read",
				Why:  err.Error(),
				Try:  "send an application-submission-context as JSON or XML, with its Content-Type",
			},
		)
		return
	}
	app, err := creel.ParseApplicationID(doc.ID)
	if err != nil {
		why := "java.lang.Exception: Error parsing application id " + doc.ID
		if doc.ID == "" {
			why = "Appid cannot be empty or null"
		}
		fail(w, r, &creel.Error{Kind: creel.ErrInvalidRequest, What: why})
		return
	}
	sub := policies.Submission{
		Application: app,
		Name:        doc.Name,
		User:        caller(r),
		Type:        doc.Type,
		Queue:       creel.QueuePath(doc.Queue),
		Label:       doc.Label,
		Tags:        doc.Tags.Tag,
		Size:        creel.NewResource(int64(doc.Resource.Memory), int64(doc.Resource.VCores)),
	}
	var head http.Header
	var answer []byte
	out := d.gate.Submit(r.Context(), sub, func(ctx context.Context, m *remote.Member, claim int64) error {
		h := forwardHeaders(r, "")
		h.Set("X-Creel-Claim", strconv.FormatInt(claim, 10))
		answer, head, err = m.Web(ctx, remote.Write, r.Method, pathOf(r), sub.User, h, b)
		return err
	})
	if out.Err != nil {
		fail(w, r, out.Err)
		return
	}
	if head == nil { // the home knew it from an earlier forward
		head = http.Header{}
	}
	head.Set("Location", "http://"+r.Host+base+"/apps/"+app.String())
	pass(w, r, http.StatusAccepted, answer, head)
}

// setState kills: at home, and then every twin.
func (d *Door) setState(w http.ResponseWriter, r *http.Request) {
	app, err := appID(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	b, err := body(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	answer, head, status, err := d.atHome(r.Context(), r, app, b)
	if err != nil {
		fail(w, r, notFoundText(err, app))
		return
	}
	home, _ := d.gate.HomeSeen(app)
	gateway.Ask(r.Context(), d.gate, func(ctx context.Context, m *remote.Member) (bool, error) {
		if m.ID == home {
			return true, nil
		}
		// A twin that this misses ends with its attempt: the proxy drops it.
		_, _, err := m.Web(ctx, remote.Write, r.Method, pathOf(r), caller(r), forwardHeaders(r, ""), b)
		return err == nil, nil
	})
	d.gate.Counts().Killed.Add(1)
	pass(w, r, status, answer, head)
}

// signal goes to whoever runs the container: home first.
func (d *Door) signal(w http.ResponseWriter, r *http.Request) {
	id, err := creel.ParseContainerID(chi.URLParam(r, "containerid"))
	if err != nil {
		fail(w, r, err)
		return
	}
	home, err := d.gate.Home(r.Context(), id.Attempt.Application)
	if err != nil {
		fail(w, r, notFoundText(err, id.Attempt.Application))
		return
	}
	answer, head, err := home.Web(r.Context(), remote.Write, r.Method, pathOf(r), caller(r), forwardHeaders(r, ""), nil)
	if err != nil {
		for _, p := range gateway.Ask(r.Context(), d.gate, func(ctx context.Context, m *remote.Member) ([]byte, error) {
			if m.ID == home.ID {
				return nil, err
			}
			b, _, err := m.Web(ctx, remote.Write, r.Method, pathOf(r), caller(r), forwardHeaders(r, ""), nil)
			return b, err
		}) {
			if p.Err == nil {
				pass(w, r, http.StatusOK, p.Value, http.Header{})
				return
			}
		}
		fail(w, r, err)
		return
	}
	pass(w, r, http.StatusOK, answer, head)
}

// atNode forwards a change of a node to the member that has it.
func (d *Door) atNode(w http.ResponseWriter, r *http.Request) {
	b, err := body(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	node := chi.URLParam(r, "nodeId")
	parts := gateway.Ask(r.Context(), d.gate, func(ctx context.Context, m *remote.Member) (string, error) {
		_, _, err := m.Web(
			ctx,
			remote.Read,
			http.MethodGet,
			base+"/nodes/"+node,
			caller(r),
			forwardHeaders(r, "application/json"),
			nil,
		)
		var refused *remote.StatusError
		if errors.As(err, &refused) && refused.Code == http.StatusNotFound {
			return "", nil
		}
		return node, err
	})
	for _, p := range parts {
		if p.Err != nil || p.Value == "" {
			continue
		}
		m, err := d.gate.Member(p.Member)
		if err == nil {
			var answer []byte
			var head http.Header
			if answer, head, err = m.Web(
				r.Context(),
				remote.Write,
				r.Method,
				pathOf(r),
				caller(r),
				forwardHeaders(r, ""),
				b,
			); err == nil {
				pass(w, r, http.StatusOK, answer, head)
				return
			}
		}
		fail(w, r, err)
		return
	}
	if partial(w, r, parts) {
		fail(w, r, &creel.Error{Kind: creel.ErrNodeNotFound, What: "nodeId, " + node + ", is not found"})
	}
}

// everywhere sends a change to every member and tells, in the words of
// Hadoop's router, who took it; nobody's taking it is an error.
func (d *Door) everywhere(w http.ResponseWriter, r *http.Request) {
	b, err := body(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	parts := gateway.Ask(r.Context(), d.gate, func(ctx context.Context, m *remote.Member) (bool, error) {
		_, _, err := m.Web(ctx, remote.Write, r.Method, pathOf(r), caller(r), forwardHeaders(r, ""), b)
		return err == nil, err
	})
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
	io.WriteString(w, text) // an error here is the client's going away
}

// askJSON gets one document from every member, as JSON.
func (d *Door) askJSON(r *http.Request, kind remote.Kind) []router.Part[[]byte] {
	return gateway.Ask(r.Context(), d.gate, func(ctx context.Context, m *remote.Member) ([]byte, error) {
		b, _, err := m.Web(ctx, kind, http.MethodGet, pathOf(r), caller(r), forwardHeaders(r, "application/json"), nil)
		return b, err
	})
}

// partial tells in headers who is missing; false means that nobody answered
// and an error has been written: the first refusal, if there is one.
func partial[T any](w http.ResponseWriter, r *http.Request, parts []router.Part[T]) bool {
	present, missing := router.Present(parts)
	if len(missing) > 0 {
		w.Header().Set("X-Partial-Result", "true")
		w.Header().Set("X-Missing-SubClusters", oneLine(router.MissingText(missing)))
	}
	if len(present) > 0 {
		return true
	}
	for _, p := range parts {
		var refused *remote.StatusError
		if errors.As(p.Err, &refused) {
			fail(w, r, refused)
			return false
		}
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

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), 1000)]
}
