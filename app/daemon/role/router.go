// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/build"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/spnego"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/dash"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	routerrpc "github.com/creelrm/creel/router/rpc"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	resolver "github.com/creelrm/creel/subcluster/resolver/server"
)

// RouterConfig is the configuration of a router, apart from its store. The configurations of its parts have what the
// settings say; NewRouter adds the objects that connect the parts.
type RouterConfig struct {
	Client, Admin, Web string // addresses to listen on
	WebKey             string // the setting with that of Web
	// WebHost is the name of the web port in this router's record, for which tickets and certificates are; "" without
	// both.
	WebHost string

	Server   server.Config
	REST     rest.Config
	Operator operator.Config // Admin and Reload
	Groups   *groups.Groups  // nil: no metrics
	Remote   remote.Config   // of calls to members
	RPC      hrpc.Config
	Site     webserver.Config

	Poll         time.Duration         // of the store
	HomeTTL      time.Duration         // time for which an ended application's home is remembered
	Signer       *subcluster.Signer    // verifies members; nil accepts all
	Machines     *resolver.MachineList // overrides the node lists that members publish
	TrialUser    string                // user in whose name members are tried; "": no trials
	Moves        rebalancer.MoveTerms  // limits for moves of waiting applications
	Mend         bool                  // repair drift of the members' queues automatically
	Dashboard    Dashboard
	AllowedHosts []string        // names that browsers may use over loopback
	SecretFile   string          // of the cluster's secret, which seals the token keys; "": the secret is in the store
	Secrets      []string        // files that others should not read
	TokenLives   token.Lifetimes // of delegation tokens
	TokenNames   tokens.Names    // with Kerberos, which they need then; nil: simple authentication
	// Refreshes are the router's own reloads at refresh calls, by name.
	Refreshes map[string]func() error
	Log       *slog.Logger
	Traces    trace.TracerProvider // of claims; nil: none
	// Wrap wraps the homes of the store; nil: no wrapper. Tests use it to stop a submission there.
	Wrap func(server.Homes) server.Homes
}

// Dashboard configures a router's pages.
type Dashboard struct {
	On      bool
	Grafana string // address of the dashboard in Grafana that pages link to; "": none
}

// RouterSettings reads a router's configuration.
func RouterSettings(s *settings.Settings) (RouterConfig, error) {
	if err := mayStart(s, settings.Router); err != nil {
		return RouterConfig{}, err
	}
	policy, err := basePolicy(s)
	if err != nil {
		return RouterConfig{}, err
	}
	signer, err := signerOf(s.String(clusterSecretFile))
	if err != nil {
		return RouterConfig{}, err
	}
	machines, err := machineList(s)
	if err != nil {
		return RouterConfig{}, err
	}
	known, err := groupsOf(s)
	if err != nil {
		return RouterConfig{}, err
	}
	acls, err := newServiceACLs(s, routerProtocols, known)
	if err != nil {
		return RouterConfig{}, err
	}
	as, err := routerLogin(s)
	if err != nil {
		return RouterConfig{}, err
	}
	grafana, err := grafanaURL(s)
	if err != nil {
		return RouterConfig{}, err
	}
	web, err := webSettings(s, settings.Router, "yarn.router.webapp.cross-origin.enabled")
	if err != nil {
		return RouterConfig{}, err
	}
	dial, err := dialTLS(s)
	if err != nil {
		return RouterConfig{}, err
	}
	const bind = "yarn.router.bind-host"
	c := RouterConfig{
		Client: s.Listen("yarn.router.clientrm.address", bind),
		Admin:  s.Listen("yarn.router.rmadmin.address", bind),
		Web:    s.Listen(routerWeb(s), bind),
		WebKey: routerWeb(s),
		Server: server.Config{
			Policy:        policy,
			HomesKept:     s.Int("creel.router.home-cache"),
			DecisionsKept: s.Int("creel.router.decisions-kept"),
			SubmitTime:    s.Duration("creel.router.submit-timeout"),
			UnclearWait:   s.Duration("creel.router.unclear-wait"),
			MaxTries:      1 + max(s.Int("yarn.router.submit.retry"), 0),
			MaxSubmission: s.Bytes("yarn.router.asc-interceptor-max-size"),
			GivesParts:    s.Bool("yarn.router.interceptor.allow-partial-result.enable"),
			ListsUAMs:     s.Bool("yarn.router.partial-result.enabled"),
			LastParts:     s.Duration("creel.router.last-parts"),
		},
		REST:         routerPages(s, known),
		Operator:     routerOperator(s, known),
		Groups:       known,
		Remote:       memberCalls(s, as, dial),
		RPC:          RPCLimits(s, "yarn.resourcemanager.client.thread-count"),
		Site:         web,
		Signer:       signer,
		Machines:     machines,
		Poll:         s.Duration("creel.store.poll-interval"),
		HomeTTL:      s.Duration("creel.store.home-ttl"),
		Moves:        moveTerms(s),
		Mend:         s.Bool("creel.rebalancer.mend"),
		Dashboard:    Dashboard{On: s.Bool("creel.router.dashboard"), Grafana: grafana},
		AllowedHosts: s.List("creel.http.allowed-hosts"),
		SecretFile:   s.String(clusterSecretFile),
		Secrets:      secretFiles(s),
		TokenLives: token.Lifetimes{
			KeyUpdate: s.Duration("yarn.resourcemanager.delegation.key.update-interval"),
			Renew:     s.Duration("yarn.resourcemanager.delegation.token.renew-interval"),
			Max:       s.Duration("yarn.resourcemanager.delegation.token.max-lifetime"),
		},
		Log:       slog.Default(),
		Traces:    tracing.Provider(s),
		TrialUser: s.String("creel.router.trial-user"),
	}
	c.Refreshes = map[string]func() error{
		"refreshUserToGroupsMappings": func() error { known.Forget(); return nil },
	}
	if acls != nil {
		c.RPC.Authorize, c.Refreshes["refreshServiceAcls"] = acls.authorize, acls.refresh
	}
	if err := as.configure(&c, s, known); err != nil {
		return RouterConfig{}, err
	}
	if c.RPC.MaxCalls == 0 { // Hadoop's keys are not set
		c.RPC.MaxCalls = s.Int("creel.router.client.max-calls")
	}
	return c, nil
}

// memberCalls are the settings of calls to members.
func memberCalls(s *settings.Settings, as daemonLogin, dial remote.DialTLS) remote.Config {
	c := remote.Config{
		User:         as.User,
		Ticket:       as.Ticket,
		DialTLS:      dial,
		KindOf:       yarnrpc.KindOf,
		Interceptors: tracing.ClientInterceptors(s),
		Transport:    tracing.Transport(s),
		OpenFor:      s.Duration("creel.router.breaker.open-time"),
		Trips:        uint32(s.Int("creel.router.breaker.failures")),
	}
	forward := s.Duration("creel.router.forward-timeout")
	c.Deadlines[remote.Write], c.Deadlines[remote.Read] = forward, forward
	c.Deadlines[remote.List] = s.Duration("creel.router.list-timeout")
	return c
}

// routerPages are the settings of the REST API and of the pages common to Hadoop's daemons.
func routerPages(s *settings.Settings, known *groups.Groups) rest.Config {
	return rest.Config{
		StaticUser: s.String("hadoop.http.staticuser.user"),
		Allows:     allows(known),
		Settings:   func() []rest.SettingDoc { return settingsInForce(s) },
		Proxy:      s.Bool("yarn.router.webapp.proxy.enable"),
		Pages:      daemonPages(s, known),
	}
}

// routerOperator has the administrators.
func routerOperator(s *settings.Settings, known *groups.Groups) operator.Config {
	return operator.Config{
		Admin: administrators(s, known),
		Reload: func() (func(string) bool, error) {
			fresh, err := s.Reload()
			if err != nil {
				return nil, err
			}
			return administrators(fresh, known), nil
		},
	}
}

// Router is an assembled router.
type Router struct {
	daemon.Service
	Server  *server.Server
	Watcher *watch.Watcher
}

// addIntents adds the loop that carries out recorded changes when their members are back.
func (r *Router) addIntents(store statestore.Store, pool *remote.Pool, moving *mover, log *slog.Logger) {
	r.Add("recorded intents", intents.New(store, intents.Config{
		View: r.Watcher.View, Log: log,
		Do: func(ctx context.Context, m *subcluster.Status, i intents.Intent) (bool, error) {
			return client.Of(pool.Member(m)).CarryOut(ctx, i)
		},
		Moving: func(ctx context.Context, app creel.ApplicationID) (bool, error) {
			_, moves, err := moving.elsewhere(ctx, app)
			return moves, err
		},
	}).Run)
}

// routerParts are the parts of a router that its assembly connects.
type routerParts struct {
	conf     RouterConfig
	store    statestore.Store
	clock    *pauseclock.Clock
	recorder *events.Recorder
	pool     *remote.Pool
	moving   *mover
	changes  *operator.Operator
	tokens   *tokens.Tokens
	stop     <-chan struct{} // closed when the router stops, for streams
}

// NewRouter assembles a router over a store, which it does not close.
func NewRouter(c RouterConfig, store statestore.Store) (_ *Router, err error) {
	r := &Router{Service: daemon.Service{Health: health.New()}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	c.REST.Pages.Ports = &servlets.Ports{}
	secret, err := clusterSecret(store, c.SecretFile)
	if err != nil {
		return nil, err
	}
	p := &routerParts{
		conf: c, store: store,
		tokens: tokens.New(store, secret, c.TokenLives, crand.Reader), recorder: events.NewRecorder(store, c.Log),
	}
	if c.TokenNames != nil {
		p.tokens.ByTicket(c.TokenNames)
	}
	watchSecrets(&r.Service, c.Secrets, nil, c.Log)
	r.addServer(p)
	r.addOperator(p)
	r.addHealth(p)
	r.addLoops(p)
	addresses := map[string]string{}
	r.Entries = []daemon.Entry{daemon.NewEntry("router", addresses)}
	if err := r.addProtocols(p, addresses); err != nil {
		return nil, err
	}
	if err := r.addWeb(p, addresses); err != nil {
		return nil, err
	}
	return r, keepRecord(&r.Service, store, "", c.Site.TLS != nil, c.Log)
}

// addServer adds the view of the federation, the connections to members, and the server over both.
func (r *Router) addServer(p *routerParts) {
	c, store := p.conf, p.store
	p.clock = newClock(&r.Service, c.Log)
	r.Watcher = watch.New(members(&r.Service, store, c.Signer, c.Log), watch.Config{
		Poll: c.Poll, Plan: store, Validate: ValidPolicy, Log: c.Log, Clock: p.clock,
		OnChange: func(c statestore.Change) { r.Server.Changed(c) },
	})
	c.Remote.Clock = p.clock
	p.pool = newPool(c, p.recorder)
	r.OnClose(p.pool.Close)
	r.Health.Register(breakerFigures{p.pool})
	exportGroups(r.Health, c.Groups)
	var homes server.Homes = store
	if c.Wrap != nil {
		homes = c.Wrap(homes)
	}
	movers := homes
	if c.Traces != nil {
		homes = tracedHomes{homes, c.Traces.Tracer("github.com/creelrm/creel/statestore")}
	}
	hosts := addResolver(&r.Service, store, r.Watcher.View, c.Machines, c.Log)
	p.moving = &mover{
		store: store, homes: movers, pool: p.pool, view: r.Watcher.View, terms: c.Moves, log: c.Log,
		name: "router-" + crand.Text(), recorder: p.recorder,
	}
	conf := c.Server
	conf.View, conf.Where, conf.Pool = r.Watcher.View, hosts.Where, p.pool
	conf.Homes, conf.Reservations = homes, store.Reservations()
	conf.Members = func(m *remote.Member) server.Member { return client.Of(m) }
	conf.Intents, conf.Record, conf.Elsewhere, conf.Clock = store, p.recorder.Record, p.moving.elsewhere, p.clock
	conf.Seed, conf.Log = cmp.Or(conf.Seed, rand.Uint64()), c.Log
	r.Server = server.New(conf)
	p.moving.policy = r.Server.Policy
}

// addOperator adds administrators' changes, and the recording of events.
func (r *Router) addOperator(p *routerParts) {
	p.stop = addEvents(&r.Service, p.recorder)
	conf := p.conf.Operator
	conf.Events, conf.View, conf.Store, conf.Known = p.recorder, r.Watcher.View, p.store, r.knows
	conf.Preview, conf.Members = p.moving.preview, memberQueues{p.moving.member}
	p.changes = operator.New(conf)
	r.Reload = func(context.Context) error { return p.changes.Refresh() }
}

// addHealth adds the checks and metrics of the router's dependencies.
func (r *Router) addHealth(p *routerParts) {
	r.Health.Check("view of the federation", func() error {
		if r.Watcher.View() == nil {
			return watch.ErrNoView
		}
		return nil
	})
	dependOnStore(&r.Service, p.store, p.conf.Log)
	dependOnView(r.Health, r.Watcher)
	r.countSubmissions()
}

// addLoops adds the router's background loops.
func (r *Router) addLoops(p *routerParts) {
	log := p.conf.Log
	r.addRebuild(p.store, p.pool, p.clock, log)
	lists := client.NewLists(p.pool)
	r.addTidy(p.store, p.conf.HomeTTL, lists, log)
	r.addReconcile(p.store, p.pool, lists, log)
	r.addIntents(p.store, p.pool, p.moving, log)
	r.addMoves(p.moving)
	if p.conf.Mend {
		r.addMends(p.changes, p.moving, p.conf.Remote.User)
	}
	r.addTrials(p.conf, p.pool)
	r.Add("view", r.Watcher.Run)
	r.Add("events of members", (&memberEvents{view: r.Watcher.View, recorder: p.recorder}).run)
	r.Add("history", r.Server.Observe)
}

// addProtocols adds the RPC ports.
func (r *Router) addProtocols(p *routerParts, addresses map[string]string) (err error) {
	c := p.conf
	addresses["client"], err = r.addRPC(
		"client",
		"yarn.router.clientrm.address",
		c.Client,
		c,
		routerrpc.Service(r.Server, p.tokens),
		routerrpc.Login(p.tokens),
	)
	if err != nil {
		return err
	}
	p.recorder.Named("router " + addresses["client"])
	addresses["admin"], err = r.addRPC(
		"admin",
		"yarn.router.rmadmin.address",
		c.Admin,
		c,
		routerrpc.AdminService(r.Server, p.changes, c.Refreshes),
		nil,
	)
	return err
}

// addWeb adds the web port: health, the REST API and the dashboard.
func (r *Router) addWeb(p *routerParts, addresses map[string]string) (err error) {
	c := p.conf
	mux, byToken := chi.NewRouter(), chi.NewRouter()
	for _, m := range []*chi.Mux{mux, byToken} {
		m.Use(r.Health.Requests, httpguard.KnownHosts(c.AllowedHosts))
	}
	r.Health.Mount(mux)
	conf := c.REST
	conf.Started, conf.Version, conf.Log, conf.User = time.Now(), build.Read().Version, c.Log, c.Remote.User
	conf.DialTLS = c.Remote.DialTLS
	conf.Readiness, conf.Stop = r.readiness, p.stop
	conf.Operator, conf.Tokens, conf.Daemons = p.changes, p.tokens, p.store
	conf.Events = events.NewLog(p.store, time.Now)
	documents := rest.New(r.Server, conf)
	documents.Mount(mux)
	// Only the REST API accepts delegation tokens: health, metrics and pages do not.
	byToken.NotFound(webserver.DisallowAnonymous)
	documents.Mount(byToken)
	c.Site.Login = webserver.Login{Shown: rest.ShowsToken, Handler: byToken}
	if login, ok := c.Site.Tickets.(*spnego.Login); ok {
		login.Tokens = tokenLogin(p.tokens)
	}
	r.addApplications(documents.Applications())
	var site *pages.Site
	if c.Dashboard.On {
		api := chi.NewRouter()
		documents.Mount(api)
		site = dash.New(api, documents.Patient, c.Dashboard.Grafana)
	}
	addresses["web"], err = addSite(&r.Service, cmp.Or(c.WebKey, routerPlainAddress), c.Web, mux, site, c.Site)
	if c.WebHost != "" {
		addresses["web"] = named(c.WebHost, addresses["web"])
	}
	if err == nil {
		r.addHistoryCopier(p, addresses["web"])
	}
	return err
}

// grafanaURL returns the address of Grafana's dashboard, which must be one that a browser can open.
func grafanaURL(s *settings.Settings) (string, error) {
	const key = "creel.router.grafana-url"
	text := s.String(key)
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", &creel.Error{
			Kind: creel.ErrInvalidRequest, What: fmt.Sprintf("%s %q is not an address of a web page", key, text),
			Try: "set an address such as https://grafana.example/d/creel, or leave it out",
		}
	}
	return text, nil
}

// settingsInForce lists the settings in force.
func settingsInForce(s *settings.Settings) (out []rest.SettingDoc) {
	for _, e := range s.Effective(false) {
		out = append(out, rest.SettingDoc{Key: e.Key, Value: e.Value, Origin: e.Origin, Status: e.Status})
	}
	return out
}

// readiness returns the lines of /readyz?verbose.
func (r *Router) readiness() (out []rest.ReadyLine) {
	conditions, dependencies := r.Health.Lines()
	for _, l := range append(conditions, dependencies...) {
		line := rest.ReadyLine{Name: l.Name, OK: l.Err == nil, Warn: l.Warn, Text: l.Text}
		if l.Err != nil {
			line.Text = l.Err.Error()
		}
		out = append(out, line)
	}
	return out
}

// knows reports whether a member has an application.
func (r *Router) knows(ctx context.Context, id creel.SubclusterID, app creel.ApplicationID) (bool, error) {
	m, err := r.Server.Member(id)
	if err != nil {
		return false, err
	}
	return client.Of(m).Has(ctx, app)
}

// newPool makes the connections to members.
func newPool(c RouterConfig, recorder *events.Recorder) *remote.Pool {
	told := c.Remote.Changed
	c.Remote.Changed = func(id creel.SubclusterID, k remote.Kind, to string) {
		c.Log.Info("breaker", "subcluster", id, "calls", k.String(), "state", to)
		recorder.Record(context.Background(), statestore.Event{
			Kind: statestore.EventBreaker, Subject: string(id), After: to, Detail: "calls: " + k.String(),
		})
		if told != nil {
			told(id, k, to)
		}
	}
	return remote.NewPool(c.Remote)
}

// addRPC binds an RPC port of the router and adds the task that serves it. If login is set, clients may also log in
// by token.
func (r *Router) addRPC(
	name, setting, address string, c RouterConfig, s hrpc.Service, login hrpc.TokenFunc,
) (bound string, err error) {
	conf := c.RPC
	if conf.Tokens = login; login == nil {
		conf.Protections = nil
	}
	conf.Services = []hrpc.Service{s}
	conf.Simple, conf.ErrorOf, conf.Logger = conf.Kerberos == nil, yarnrpc.ErrorOf, c.Log
	listening, err := watchedServer(name, conf, r.Health)
	if err != nil {
		return "", err
	}
	l, err := r.Listen(setting, address)
	if err != nil {
		return "", err
	}
	c.REST.Pages.Ports.Add(l.Addr().String(), listening)
	r.Add(name+" server", func(ctx context.Context) error { return listening.Run(ctx, l) })
	return l.Addr().String(), nil
}

func (r *Router) countSubmissions() {
	n := r.Server.Counts()
	for _, c := range []struct {
		name, help string
		load       func() int64
	}{
		{"submissions_total", "Submissions received.", n.Submitted.Load},
		{"submissions_accepted_total", "Submissions a subcluster took.", n.Accepted.Load},
		{"submissions_failed_total", "Submissions answered with an error.", n.Failed.Load},
		{"submissions_moved_total", "Submissions offered to more than one subcluster.", n.Moved.Load},
		{"partial_answers_total", "Merged answers that lacked a subcluster.", n.Partial.Load},
		{"unlisted_fields_total", "Fields of merged answers that no merge rule lists.", n.Unlisted.Load},
	} {
		r.Health.Counter("creel_router_"+c.name, c.help, c.load)
	}
	r.Health.Register(homeFigures{r.Server.RememberedHomes})
	for v := range router.Verdict(router.Verdicts) {
		if v == router.Accepted {
			continue
		}
		r.Health.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "creel_router_claims_moved_total",
			Help:        "Submissions moved away from a member, by the outcome of the call there.",
			ConstLabels: prometheus.Labels{"reason": strings.ReplaceAll(v.String(), " ", "_")},
		}, func() float64 { return float64(n.MovedAfter[v].Load()) }))
	}
}
