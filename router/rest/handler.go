// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"log/slog"
	"net/http"
	"os/user"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// base is the base path of YARN's documents.
const base = "/ws/v1/cluster"

// Config configures a Handler; zero values take the defaults.
type Config struct {
	Started time.Time // reported as the start of this router
	// Operator makes administrators' changes; nil: their paths are not served.
	Operator *operator.Operator
	Log      *slog.Logger // gets an audit line for each change; slog.Default if nil
	Version  string       // of this software
	// Proxy: this router forwards requests to AMs' pages.
	Proxy bool
	// DialTLS makes connections to web ports with TLS; nil: they trust the machine's signers.
	DialTLS remote.DialTLS
	// Readiness and Settings are in answers unchanged; nil: they are left out.
	Readiness func() []ReadyLine
	// User is the user of the router's calls for data common to all viewers; "": it calls as each viewer. Allows
	// reports whether an access list in Hadoop's form allows a user. StaticUser is the user of requests without a
	// name.
	User, StaticUser string
	Allows           func(user string) func(acl string) bool
	Settings         func() []SettingDoc
	// Daemons reads the store's records of routers, proxies and rebalancers; nil: none are listed.
	Daemons statestore.Daemons
	// Events are the federation's events; nil: they are not served. Stop ends their streams.
	Events *events.Log
	Stop   <-chan struct{}
	// Tokens are the routers' delegation tokens.
	Tokens *tokens.Tokens
	// LoginUser is the user that runs this process.
	LoginUser string
	// Pages configures the pages common to all Hadoop daemons; the handler adds the router's parts.
	Pages servlets.Config
}

// Handler serves the router's documents.
type Handler struct {
	server       *server.Server
	conf         Config
	toHomes      *http.Transport
	applications appsAPI
	shownNodes   *shared[*NodeRow]
	drains       drainsAPI
	scheduler    *schedulerAPI
	daemons      *daemonsAPI
	pageBatcher  pageBatcher
	yarn         yarnLists
}

// New makes a handler.
func New(s *server.Server, conf Config) *Handler {
	if conf.Log == nil {
		conf.Log = slog.Default()
	}
	conf.StaticUser = cmp.Or(conf.StaticUser, "dr.who")
	if u, err := user.Current(); err == nil {
		conf.LoginUser = cmp.Or(conf.LoginUser, u.Username)
	}
	h := &Handler{
		server: s, conf: conf, toHomes: newToHomes(conf.DialTLS),
		yarn: yarnLists{server: s, started: conf.Started},
	}
	h.yarn.long.Last = s.LastParts()
	h.applications = appsAPI{newApps(s, &h.conf), conf.StaticUser}
	s.ListedBy(h.applications.home)
	h.shownNodes = sharedList(listOf(s, base+"/nodes?", "nodes", "node", nodeRow), mergeNodes, 0, nil)
	h.scheduler, h.daemons = newScheduler(h), newDaemons(conf.Daemons)
	h.drains.init(h)
	return h
}

// Applications returns the list of applications that creel's own views show. The caller must run it.
func (h *Handler) Applications() *apps.List { return h.applications.list }

// Mount adds the routes to r: router.Documents below /ws/v1/cluster, and the native API.
func (h *Handler) Mount(r chi.Router) {
	r.Route(base, func(r chi.Router) {
		r.Use(middleware.StripSlashes, secure, h.login(failLogin), h.audit, typed, h.patient,
			httpguard.Options(r), middleware.GetHead)
		for _, doc := range router.Documents {
			if doc.Protocol != "REST" {
				continue
			}
			method, path, _ := strings.Cut(doc.Name, " ")
			switch {
			case method == "*":
				r.HandleFunc(path, h.handler(doc))
			case method == http.MethodGet && doc.Route == router.Merged:
				r.With(h.pageBatcher.share).Get(path, h.handler(doc))
			default:
				r.MethodFunc(method, path, h.handler(doc))
			}
		}
		r.NotFound(servlets.NotFound)
		r.MethodNotAllowed(wrongMethod)
	})
	h.native(r)
	pages := h.conf.Pages
	pages.Service, pages.Started, pages.Beans = service, h.conf.Started, h.beans
	known := r.With(h.login(failLogin))
	servlets.Mount(known, pages)
	if h.conf.Proxy {
		known.HandleFunc("/proxy/{appid}", h.proxy)
		known.HandleFunc("/proxy/{appid}/*", h.proxy)
	}
}

// serve serves one document.
type serve = func(h *Handler, w http.ResponseWriter, r *http.Request)

// byName has the documents with a handler of their own, by their name in router.Documents.
var byName = map[string]serve{
	"GET /apps":                                            (*Handler).apps,
	"* /apps/{appid}":                                      (*Handler).report,
	"GET /nodes":                                           (*Handler).nodes,
	"GET /nodes/{nodeId}":                                  (*Handler).node,
	"PUT /apps/{appid}/state":                              changing(readKill),
	"PUT /apps/{appid}/queue":                              changing(readMove),
	"PUT /apps/{appid}/priority":                           changing(readPriority),
	"PUT /apps/{appid}/timeout":                            changing(readTimeout),
	"POST /apps/new-application":                           (*Handler).newApplication,
	"POST /nodes/{nodeId}/replace-labels":                  (*Handler).relabel,
	"GET /scheduler/bulk-activities":                       (*Handler).bulkActivities,
	"GET /userinfo":                                        (*Handler).userinfo,
	"GET /reservation/list":                                (*Handler).reservations,
	"POST /reservation/submit":                             (*Handler).reserve,
	"POST /reservation/update":                             (*Handler).reservation,
	"POST /reservation/delete":                             (*Handler).unreserve,
	"POST /delegation-token":                               (*Handler).issueToken,
	"POST /delegation-token/expiration":                    (*Handler).renewToken,
	"DELETE /delegation-token":                             (*Handler).cancelToken,
	"POST /containers/{containerid}/signal/{command}":      (*Handler).signal,
	"GET /apps/{appid}/appattempts/{attemptid}/containers": (*Handler).containers,
	"GET /apps/{appid}/appattempts/{attemptid}/containers/{containerid}": (*Handler).container,
}

// byRoute has the handlers of all others, except merged documents.
var byRoute = map[router.Route]serve{
	router.AtHome:     (*Handler).home,
	router.AtOwner:    (*Handler).atNode,
	router.ByName:     (*Handler).named,
	router.Everywhere: (*Handler).everywhere,
	router.Chosen:     (*Handler).submit,
	router.AtAny:      (*Handler).anyone,
}

// handler returns the handler of a document, by its name or else by its route.
func (h *Handler) handler(doc router.Document) http.HandlerFunc {
	own, ok := byName[doc.Name]
	if !ok {
		own, ok = byRoute[doc.Route]
	}
	if ok {
		return func(w http.ResponseWriter, r *http.Request) { own(h, w, r) }
	}
	return h.merged(doc.Type)
}

const service = "Router"

// beans returns the router's beans in /jmx, with the names of Hadoop's router.
func (h *Handler) beans(*http.Request) ([]servlets.Bean, error) {
	n := h.server.Counts()
	b := servlets.Metrics(service, "RouterMetrics", "router")
	b.Set("tag.RouterMetrics", service)
	b.Set("NumAppsFailedSubmitted", n.Failed.Load())
	b.Set("TotalSucceededAppsSubmittedNumOps", n.Accepted.Load())
	b.Set("TotalSucceededAppsKilledNumOps", n.Killed.Load())
	return []servlets.Bean{b}, nil
}
