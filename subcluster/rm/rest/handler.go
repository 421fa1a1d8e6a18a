// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"hash/maphash"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"os/user"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/trace"
)

// Config is a Handler's configuration beyond its server.
type Config struct {
	StaticUser string // hadoop.http.staticuser.user: the user of requests without a name, dr.who
	// Nameless lets every request act as StaticUser: a name in a request proves nothing where RPC demands Kerberos.
	Nameless  bool
	LoginUser string // user of this process; the operating system's user when empty
	MaxBody   int64  // limit of a request's body in bytes, 8 MiB if 0
	// NoSubmissions rejects applications: yarn.webapp.enable-rest-app-submissions=false.
	NoSubmissions bool
	// KeepTagCase: submissions' tags keep their case: application-tag-based-placement.force-lowercase=false.
	KeepTagCase bool
	// ProxyHosts are additional hosts of AMs' pages, besides those on which the AMs run; * is any host.
	ProxyHosts []string
	// ProxyTimeout limits the web proxy's wait for an AM; 0 is no limit.
	ProxyTimeout time.Duration
	// Resources are the resource types beyond memory and vcores.
	Resources    []ResourceType
	MaxContainer creel.Resource // largest container, for responses to new applications
	// State names the place of the ResourceManager's state: "Redis". Empty: this process alone.
	State string
	// Pages are the servlets of every Hadoop daemon; the handler adds the fields of this ResourceManager.
	Pages servlets.Config
}

// ResourceType is a resource type with the configured bounds of one allocation, in its unit.
type ResourceType struct {
	creel.ResourceType
	Min, Max int64
}

// TypesOf returns the resource types of a machine's configuration.
func TypesOf(c *rm.Config) (types []ResourceType) {
	for _, t := range c.ResourceTypes {
		of := ResourceType{ResourceType: t, Min: t.InUnit(c.MinAllocation.Get(t.Name)), Max: math.MaxInt64}
		if most := c.MaxAllocation.Get(t.Name); most < 1<<62 {
			of.Max = t.InUnit(most)
		}
		types = append(types, of)
	}
	return types
}

// Handler serves a ResourceManager's documents. It has the parts that every document needs. Each subject has a handler
// of its own.
type Handler struct {
	s      *server.Server
	conf   Config
	making locks
	sizes  sync.Map // size of the last document by its root's name, for the next buffer

	apps    *appsAPI
	queues  *queuesAPI
	nodes   *nodesAPI
	cluster *clusterAPI
	labels  labelsAPI
	drains  drainsAPI
	tokens  tokensAPI
	pages   proxyAPI
}

// appsAPI serves the documents of applications and their attempts, and the changes that clients make to them.
type appsAPI struct {
	*Handler
	changes changes
}

// queuesAPI serves the documents of queues and the scheduler, and the changes of the queues' configuration.
type queuesAPI struct{ *Handler }

// nodesAPI serves the documents of nodes.
type nodesAPI struct{ *Handler }

// clusterAPI serves the figures of the whole cluster.
type clusterAPI struct {
	*Handler
	rate          rate
	metricsDoc    shortCache
	routedMetrics shortCache                // for routers
	infoDoc       [2]atomic.Pointer[[]byte] // JSON and XML; never changes

	// Only code within Query uses these: the machine has one owner at a time.
	use    nodeUse
	useAt  time.Time
	delays delays
}

// labelsAPI serves the documents of node labels, and the changes that clients make to them.
type labelsAPI struct{ *Handler }

// proxyAPI forwards requests to the pages of AMs.
type proxyAPI struct {
	*Handler
	ams *http.Transport
}

// New makes the handler.
func New(s *server.Server, conf Config) *Handler {
	conf.StaticUser = cmp.Or(conf.StaticUser, "dr.who")
	if conf.MaxBody <= 0 {
		conf.MaxBody = 8 << 20
	}
	if conf.LoginUser == "" {
		if u, err := user.Current(); err == nil {
			conf.LoginUser = u.Username
		}
	}
	h := &Handler{s: s, conf: conf, making: locks{seed: maphash.MakeSeed()}}
	h.apps, h.queues, h.nodes = &appsAPI{Handler: h}, &queuesAPI{h}, &nodesAPI{h}
	h.cluster = &clusterAPI{Handler: h, delays: delays{}}
	h.labels, h.drains, h.tokens = labelsAPI{h}, drainsAPI{h}, tokensAPI{h}
	h.pages = proxyAPI{h, newAMs(conf.ProxyTimeout)}
	return h
}

// Mount puts the handler's routes on r.
func (h *Handler) Mount(r chi.Router) {
	r.Route("/ws/v1/cluster", func(r chi.Router) {
		r.Use(middleware.StripSlashes, httpguard.Options(r), middleware.GetHead, h.identify)
		r.NotFound(servlets.NotFound)
		r.MethodNotAllowed(h.wrongMethod)
		r.Get("/", h.cluster.info)
		r.Get("/info", h.cluster.info)
		r.Get("/userinfo", h.cluster.userinfo)
		r.Get("/metrics", h.cluster.metrics)
		r.Get("/scheduler", h.cached(h.queues.scheduler))
		r.Get("/scheduler-overview", h.queues.overview)
		r.Get("/scheduler/activities", h.queues.activities)
		r.Get("/scheduler/bulk-activities", h.queues.bulkActivities)
		r.Get("/scheduler/app-activities/{appid}", h.queues.appActivities)
		r.Get("/nodes", h.cached(h.nodes.nodes))
		r.Get("/nodes/{nodeId}", h.nodes.node)
		r.Post("/nodes/{nodeId}/resource", h.nodes.setNodeResource)
		r.Get("/queues/{queue}/access", h.queues.queueAccess)

		r.Get("/apps", h.cached(h.apps.apps))
		r.Post("/apps", h.unlessOff(h.apps.submit))
		r.Post("/apps/new-application", h.unlessOff(h.apps.newApplication))
		r.Get("/appstatistics", h.apps.statistics)
		r.Get("/apps/{appid}", h.apps.app)
		r.Get("/apps/{appid}/appattempts", h.apps.attempts)
		r.Get("/apps/{appid}/appattempts/{attemptid}", h.apps.attempt)
		r.Get("/apps/{appid}/appattempts/{attemptid}/containers", h.apps.containers)
		r.Get("/apps/{appid}/appattempts/{attemptid}/containers/{containerid}", h.apps.container)
		r.Get("/apps/{appid}/state", h.apps.state)
		r.Put("/apps/{appid}/state", h.apps.setState)
		r.Get("/apps/{appid}/queue", h.apps.queue)
		r.Put("/apps/{appid}/queue", h.apps.setQueue)
		r.Get("/apps/{appid}/priority", h.apps.priority)
		r.Put("/apps/{appid}/priority", h.apps.setPriority)
		r.Get("/apps/{appid}/timeouts", h.apps.timeouts)
		r.Get("/apps/{appid}/timeouts/{type}", h.apps.timeout)
		r.Put("/apps/{appid}/timeout", h.apps.setTimeout)
		r.Post("/containers/{containerid}/signal/{command}", h.apps.signal)
		h.labels.mountLabels(r)
		h.queues.mountQueuesConf(r)
		h.tokens.mount(r)
		h.mountOff(r)
	})
	// This polled document bypasses the mount, which costs more than the document itself. The route is for this path
	// and method alone: with a trailing slash, or as HEAD, the request reaches the mount.
	r.With(h.identify).Get("/ws/v1/cluster/info", h.cluster.info)
	r.With(h.identify).Get("/ws/v1/cluster/metrics", h.cluster.metrics)
	r.With(h.identify).Get("/api/v1/apps", h.cached(h.apps.lines))
	r.With(h.identify).Get("/api/v1/nodes", h.cached(h.nodes.nodeLines))
	r.With(h.identify).Get("/api/v1/nodes/{nodeId}/containers", nodeContainers(h))
	r.With(h.identify).Get("/api/v1/apps/changes", h.apps.appChanges)
	r.With(h.identify).Get("/api/v1/apps/{appid}/why", h.apps.why)
	r.With(h.identify).Get("/api/v1/apps/{appid}/logs", h.apps.logs)
	r.With(h.identify).Get("/api/v1/queues/{queue}/preempt", h.queues.preemption)
	r.With(h.identify).Get("/api/v1/scheduler-conf/changes", h.queues.confChanges)
	r.With(h.identify).Post("/api/v1/scheduler-conf/changes/{version}/undo", h.queues.undoConf)
	r.With(h.identify).Get("/api/v1/drains", h.drains.list)
	r.With(h.identify).Get("/api/v1/drains/{host}", h.drains.host)
	r.With(h.identify).Put("/api/v1/drains/{host}", h.drains.drain)
	r.With(h.identify).Delete("/api/v1/drains/{host}", h.drains.undrain)
	r.Get("/api/v1/openapi.json", h.openapi)
	pages := h.conf.Pages
	pages.Service, pages.Started, pages.Beans = service, h.s.Started(), h.cluster.beans
	servlets.Mount(r, pages)
	r.With(h.identify).HandleFunc("/proxy/{appid}", h.pages.proxy)
	r.With(h.identify).HandleFunc("/proxy/{appid}/*", h.pages.proxy)
}

// param returns a decoded part of the path: clients may write a node's colon as %3A.
func param(r *http.Request, name string) string {
	text := chi.URLParam(r, name)
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return strings.TrimSpace(text)
}

// Header values that never change, shared by all responses: read-only.
var (
	noCache       = []string{"no-cache"}
	sameOrigin    = []string{"SAMEORIGIN"}
	noSniff       = []string{"nosniff"}
	varyEncoding  = []string{"Accept-Encoding"}
	asJSON, asXML = []string{typeJSON}, []string{typeXML}
)

// identify rejects callers without permission to act for another user, and finds the groups of the others. Its headers
// are on every response. They are set directly, not by name, because small documents are requested often.
func (h *Handler) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["Cache-Control"] = noCache
		header["X-Frame-Options"] = sameOrigin
		header["X-Content-Type-Options"] = noSniff
		user, real := h.who(r)
		if real != "" {
			if err := h.s.Impersonate(real, user, remote(r).Addr()); err != nil {
				h.refuse(w, r, &refusal{http.StatusForbidden, classAuthorization, err.Error()})
				return
			}
		}
		h.s.Groups(user) // queries check rights by groups that are found already
		next.ServeHTTP(w, r)
	})
}

// who returns the calling user: user.name, or the static user of an open cluster. If that user acts for another one,
// who returns the other user, and the caller as real.
func (h *Handler) who(r *http.Request) (user, real string) {
	if h.conf.Nameless {
		return h.conf.StaticUser, ""
	}
	user = cmp.Or(query.First(r.URL.RawQuery, "user.name"), h.conf.StaticUser)
	as := ""
	for name, value := range query.Pairs(r.URL.RawQuery) {
		if strings.EqualFold(name, "doAs") {
			as = value
			break
		}
	}
	if as != "" && as != user {
		return as, user
	}
	return user, ""
}

// remote returns a client's address. An invalid address is left out of the audit line.
func remote(r *http.Request) netip.AddrPort {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	return a
}

func (h *Handler) caller(r *http.Request) server.Caller {
	user, real := h.who(r)
	c := server.Caller{User: user, RealUser: real, Remote: remote(r), Request: r.Header.Get("X-Request-Id")}
	login := httpguard.LoginOf(r.Context())
	c.Auth = login.Method()
	if real == "" {
		c.RealUser = login.RealUser
	}
	c.Forwarded, _ = netip.ParseAddr(r.Header.Get("X-Forwarded-For"))
	if sc := trace.SpanContextFromContext(r.Context()); sc.IsValid() {
		c.Trace = sc.TraceID().String()
	}
	return c
}

// do performs an Op and waits for its result.
func do[T any](h *Handler, r *http.Request, op server.Op[T]) (T, error) {
	return server.Do(r.Context(), h.s, h.caller(r), op)
}

// read runs a query in the machine's owner.
func (h *Handler) read(ctx context.Context, f func(m *rm.Machine, now time.Time)) error {
	return h.s.Query(ctx, f)
}

const (
	typeJSON = "application/json;charset=utf-8"
	typeXML  = "application/xml; charset=utf-8"
)

func contentType(r *http.Request) []string {
	if webdoc.PrefersXML(r) {
		return asXML
	}
	return asJSON
}

// reply writes a document in the form that the client requested.
func (h *Handler) reply(
	w http.ResponseWriter,
	r *http.Request,
	status int,
	root string,
	form regime,
	fields func(w *writer),
) {
	w.Header()["Content-Type"] = contentType(r)
	send(w, r, status, h.document(r, root, form, fields))
}

// document makes a document in the form that the client requested. The buffer's first size is that of the last document
// of its kind. The growth of a long buffer would cost as much as the document itself.
func (h *Handler) document(r *http.Request, root string, form regime, fields func(w *writer)) []byte {
	size := 4 << 10
	if last, ok := h.sizes.Load(root); ok {
		size = max(size, last.(int))
	}
	doc := &writer{xml: webdoc.PrefersXML(r), buf: make([]byte, 0, size)}
	doc.document(root, form, fields)
	if n := len(doc.buf); n > size || n < size/2 && size > 64<<10 {
		h.sizes.Store(root, n+n/8)
	}
	return doc.buf
}

// text sends one of YARN's plain-text responses, whatever its Content-Type.
func (h *Handler) text(w http.ResponseWriter, r *http.Request, status int, s string) {
	w.Header()["Content-Type"] = contentType(r)
	send(w, r, status, []byte(s))
}

// worthPacking is the minimum size in bytes at which compression pays off.
const worthPacking = 8 << 10

var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // cannot fail: the level is valid
	return z
}}

// send writes a body, compressed if it is long and the client accepts that.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header()["Vary"] = varyEncoding
	if len(body) < worthPacking || !webdoc.TakesGzip(r) {
		w.WriteHeader(status)
		w.Write(body) // fails only if the client closed the connection
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := packers.Get().(*gzip.Writer)
	defer packers.Put(z)
	z.Reset(w)
	z.Write(body)
	z.Close()
}

// sendDocument sends a document as JSON.
func (h *Handler) sendDocument(w http.ResponseWriter, r *http.Request, doc any) {
	b, err := json.Marshal(doc)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w.Header()["Content-Type"] = asJSON
	send(w, r, http.StatusOK, b)
}
