// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/spnego"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/dash"
	"github.com/creelrm/creel/subcluster/rm/rest"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// RMConfig is the configuration of a ResourceManager.
type RMConfig struct {
	RM     server.Config
	Ports  rmrpc.Config // addresses of its protocols
	Web    string       // address to listen on
	WebKey string       // the setting with this address
	REST   rest.Config
	// AllowedHosts are names that browsers may use over loopback.
	AllowedHosts []string
	WebServer    webserver.Config
	Membership   *Membership // nil: not in a federation
	Pair         *PairConfig // nil: not in an HA pair
	Secrets      []string    // files that others should not read
	Log          *slog.Logger
}

// subcluster returns its id as a member, "" outside a federation.
func (c *RMConfig) subcluster() creel.SubclusterID {
	if c.Membership == nil {
		return ""
	}
	return c.Membership.ID
}

// Member reports whether the settings of a ResourceManager make it a member of a federation, by naming a store.
func Member(s *settings.Settings) bool { return s.String("creel.store.url") != "memory" }

// RMSettings reads a ResourceManager's configuration. store is the federation's; with nil, the ResourceManager joins
// none.
func RMSettings(s *settings.Settings, store statestore.Store) (RMConfig, error) {
	if err := mayStart(s, settings.RM); err != nil {
		return RMConfig{}, err
	}
	conf, ports, err := rmSettings(s)
	if err != nil {
		return RMConfig{}, err
	}
	web, err := webSettings(s, settings.RM, "yarn.resourcemanager.webapp.cross-origin.enabled")
	if err != nil {
		return RMConfig{}, err
	}
	conf.Dir = s.String("creel.rm.data")
	conf.Traces = tracing.Provider(s)
	conf.Tags = codec.TagLimits{
		Count:  s.Int("yarn.resourcemanager.application.max-tags"),
		Length: s.Int("yarn.resourcemanager.application.max-tag.length"),
	}
	conf.MaxSubmission = s.Bytes("yarn.router.asc-interceptor-max-size")
	c := RMConfig{
		RM:           conf,
		Ports:        ports,
		Web:          listenAt(s, rmWeb(s)),
		WebKey:       rmWeb(s),
		AllowedHosts: s.List("creel.http.allowed-hosts"),
		REST: rest.Config{
			StaticUser:   s.String("hadoop.http.staticuser.user"),
			Nameless:     secure(s) && !webByTicket(s),
			KeepTagCase:  !s.Bool("yarn.resourcemanager.application-tag-based-placement.force-lowercase"),
			ProxyHosts:   s.List("creel.rm.proxy.hosts"),
			ProxyTimeout: proxyTimeout(s),
			MaxBody:      s.Bytes("creel.http.max-request-size"),
			MaxContainer: conf.Machine.MaxAllocation,
			Resources:    rest.TypesOf(&conf.Machine),
			Pages:        daemonPages(s, conf.Groups),

			NoSubmissions: !s.Bool("yarn.webapp.enable-rest-app-submissions"),
		},
		WebServer: demandHeader(s, web),
		Secrets:   secretFiles(s),
		Log:       slog.Default(),
	}
	id := creel.SubclusterID(s.String("creel.subcluster.id"))
	if store != nil {
		if id == "" {
			id = creel.SubclusterID(c.RM.ClusterID)
		}
		if c.Membership, err = membershipSettings(s, id, store); err != nil {
			return RMConfig{}, err
		}
	}
	if c.RM.ClusterID == "" {
		c.RM.ClusterID = string(id)
	}
	shared, err := sharedStateOf(s, stateName(s), c.Log)
	if err != nil {
		return RMConfig{}, s.Problem(stateKey(s), err.Error(), "")
	}
	if shared != nil {
		c.RM.State = func() (state.Log, error) { return openShared(shared) }
		c.REST.State = shared.place()
	} else if s.String("creel.rm.data") != "" {
		c.REST.State = "journal"
	}
	if s.Bool(haEnabled) {
		c.Pair = pairConfig(s, shared, store)
	}
	return c, nil
}

// RM is an assembled ResourceManager.
type RM struct {
	daemon.Service
	Server *server.Server
	dir    string // of the journal, "" for none
	shared bool   // the state is in Redis or ZooKeeper
}

// NewRM assembles a ResourceManager that is not in an HA pair: its server, its web port and, in a federation, its
// membership.
func NewRM(c RMConfig) (*RM, error) {
	if c.Pair != nil {
		return nil, errors.New("resource manager: it is in an HA pair, and would be assembled alone")
	}
	r, p, err := newRM(c)
	if err != nil {
		return nil, err
	}
	web, err := addSite(&r.Service, c.WebKey, c.Web, p.mux, p.site, c.WebServer)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.publish(c, p.alone, server.Addresses{Web: web})
	return r, nil
}

// rmParts are the parts of a ResourceManager that its web port and its membership need.
type rmParts struct {
	mux   *chi.Mux
	site  *pages.Site
	alone *aloneCheck
}

// newRM assembles a ResourceManager without its web port. publish completes it.
func newRM(c RMConfig) (_ *RM, _ *rmParts, err error) {
	r := &RM{Service: daemon.Service{Health: health.New()}, dir: c.RM.Dir, shared: c.RM.State != nil}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	var ports *rmrpc.Ports
	if m := c.Membership; m != nil {
		named := c.RM.Epoch
		c.RM.FirstEpoch = func(kept int64, before bool) (int64, error) {
			return m.firstEpoch(named, kept, before, c.Log)
		}
		if c.RM.Secure != nil {
			c.RM.Renewals.Servers = withRouterTokens(c.RM.Renewals.Servers, c.RM, m)
		}
	}
	if r.Server, ports, err = rmrpc.Open(c.RM, c.Ports); err != nil {
		return nil, nil, err
	}
	var alone *aloneCheck
	if m := c.Membership; m != nil {
		alone = &aloneCheck{Store: m.Store, ID: m.ID, Every: m.Heartbeat, done: make(chan struct{})}
		if !m.TakeOver && !r.shared { // a shared state has fenced its previous holder
			alone.Previous = r.Server.MemberEpoch()
		}
	}
	run := func(ctx context.Context) error {
		if alone != nil {
			if err := alone.start(ctx); err != nil {
				m := c.Membership
				recordRefusal(ctx, m.Store, "rm", subcluster.Member{ID: m.ID}, err, c.Log)
				return err
			}
		}
		if c.Membership != nil && r.Server.FirstStart() {
			if err := c.Membership.emptyStart(ctx, c.RM.Dir, c.Log); err != nil {
				return err
			}
		}
		return r.Server.Run(ctx, ports.Run)
	}
	r.AddSelfClosing("resource manager", run, func() error { return errors.Join(ports.Close(), r.Server.Close()) })
	r.Reload = r.Server.RefreshQueues
	m := r.Server.Metrics()
	r.Health.Counter("creel_rm_node_heartbeats_total", "Heartbeats of nodes.", m.Heartbeats.Load)
	r.Health.Counter("creel_rm_allocates_total", "Allocate calls of AMs.", m.Allocates.Load)
	r.Health.Counter("creel_rm_submissions_total", "Applications submitted.", m.Submissions.Load)
	r.Health.Counter("creel_rm_preempted_containers_total", "Containers taken back for others.", m.Preempted.Load)
	r.Health.Counter("creel_rm_launches_total", "AMs started.", m.Launches.Load)
	r.Health.Gauge("creel_rm_tokens", "Tokens of running applications that are renewed.", func() float64 {
		return float64(r.Server.Renewer.Held())
	})
	r.Health.Counter("creel_rm_token_renewals_total", "Renewals of applications' tokens.", r.Server.Renewer.Renewed)
	r.Health.Counter("creel_rm_token_renewal_failures_total", "Failed attempts to renew them.",
		r.Server.Renewer.Failures.Load)
	r.Health.Counter("creel_rm_tokens_obtained_total", "Tokens obtained for applications in place of ended ones.",
		r.Server.Renewer.Obtained)
	exportGroups(r.Health, c.RM.Groups)
	exportOutside(r.Health, c.RM.Outside)
	countPauses(r.Health, func() time.Duration { return time.Duration(m.Paused.Load()) })
	r.Health.RegisterOf(prometheus.Labels{"subcluster": string(c.subcluster())}, newSubclusterFigures(r.Server.Query))

	watchSecrets(&r.Service, c.Secrets, nil, c.Log)
	dependOnJournal(r.Health, r.Server)
	reportVolatileJournal(r.Health, r.volatile)
	if c.Membership != nil {
		dependOnStore(&r.Service, c.Membership.Store, c.Log)
	}
	mux := chi.NewRouter()
	mux.Use(r.Health.Requests, httpguard.KnownHosts(c.AllowedHosts))
	r.Health.Mount(mux)
	c.REST.Pages.Ports = &servlets.Ports{}
	ports.Each(c.REST.Pages.Ports.Add)
	documents, api := rest.New(r.Server, c.REST), chi.NewRouter()
	documents.Mount(mux)
	documents.Mount(api)
	if login, ok := c.WebServer.Tickets.(*spnego.Login); ok {
		login.Tokens = func(text string) (httpguard.Login, error) { return server.TokenLogin(r.Server, text) }
	}
	return r, &rmParts{mux, dash.New(api), alone}, nil
}

// publish names the addresses of the ports that newRM did not bind, and joins the federation.
func (r *RM) publish(c RMConfig, alone *aloneCheck, bound server.Addresses) {
	r.Server.SetAddresses(bound)
	a, web := r.Server.Addresses(), bound.Web
	r.Entries = []daemon.Entry{daemon.NewEntry("rm", map[string]string{
		"client":    a.Client,
		"scheduler": a.Scheduler,
		"tracker":   a.Tracker,
		"admin":     a.Admin,
		"web":       web,
	})}
	if c.Membership != nil {
		c.Membership.join(r, subcluster.Addresses{
			Client:    a.Client,
			Scheduler: a.Scheduler,
			Admin:     a.Admin,
			Tracker:   a.Tracker,
			Web:       web,
		}, alone, c.Log)
	}
}

// proxyTimeout is the time for which the web proxy waits for an AM; 0: no limit.
func proxyTimeout(s *settings.Settings) time.Duration {
	wait := s.Duration("yarn.resourcemanager.proxy.connection.timeout")
	if !s.Bool("yarn.resourcemanager.proxy.timeout.enabled") {
		wait = 0
	}
	return wait
}
