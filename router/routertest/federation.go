// SPDX-License-Identifier: Apache-2.0

// Package routertest makes a federation within a test: ResourceManagers with
// simulated nodes, a store, and routers, over real sockets. The network between can be cut, answers can be held back, and a
// router can be stopped for good between any two steps of a submission.
package routertest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/dash"
	"github.com/creelrm/creel/router/rest"
	routerrpc "github.com/creelrm/creel/router/rpc"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/cache"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
	rmrest "github.com/creelrm/creel/subcluster/rm/rest"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
	"github.com/go-chi/chi/v5"
)

// Options of a federation; zero values give two members of two nodes and two
// routers.
type Options struct {
	Members, Routers, Nodes int
	// Change changes a member's configuration before it starts.
	Change func(i int, c *rmserver.Config)
	// Trips is how many silences open a breaker, 3.
	Trips uint32
	// OpenFor is how long a breaker stays open, 1 s.
	OpenFor time.Duration
	// Log is the routers'; nil drops it.
	Log *slog.Logger
	// Breaker is told of a breaker's new state; may be nil.
	Breaker func(creel.SubclusterID, remote.Kind, string)
}

// Federation runs until the test ends.
type Federation struct {
	t       testing.TB
	Store   *statestore.Memory
	Members []*Member
	Routers []*Router
	RPC     *hrpc.Client
}

// Member is a ResourceManager; routers see it through relays.
type Member struct {
	ID                 creel.SubclusterID
	D                  *rmserver.Server
	WebAddress         string // past the relay
	Client, Admin, Web *Relay
}

// Start starts a federation and waits until every router sees every member.
func Start(t testing.TB, o Options) *Federation {
	t.Helper()
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&o.Members, 2)
	def(&o.Routers, 2)
	def(&o.Nodes, 2)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Trips == 0 {
		o.Trips = 3
	}
	if o.OpenFor == 0 {
		o.OpenFor = time.Second
	}
	valid := func(_ creel.QueuePath, doc []byte) error { _, err := policies.Parse(doc); return err }
	f := &Federation{
		t:     t,
		Store: statestore.NewMemory(statestore.NewState("test", valid), time.Now),
		RPC:   hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
	}
	t.Cleanup(func() { f.RPC.Close() })
	for i := range o.Members {
		f.Members = append(f.Members, f.member(i, o))
	}
	for range o.Routers {
		f.Routers = append(f.Routers, f.router(o))
	}
	f.Until("every router sees every member with its load", func() bool {
		for _, r := range f.Routers {
			v := r.Server.View()
			if v == nil || len(v.Active()) != o.Members {
				return false
			}
			for i := range v.Members {
				if v.Members[i].Load.Metrics.ActiveNodes != int64(o.Nodes) {
					return false
				}
			}
		}
		return true
	})
	return f
}

// run starts a loop that ends with the test, or before.
func run(t testing.TB, what string, loop func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- loop(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("%s ended with %v", what, err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// web serves a handler; stop ends it at once, with its connections.
func web(t testing.TB, what string, h http.Handler) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	return l.Addr().String(), run(t, what, func(ctx context.Context) error {
		closed := make(chan struct{})
		defer context.AfterFunc(ctx, func() {
			defer close(closed)
			web.Close()
		})()
		if err := web.Serve(l); err != http.ErrServerClosed {
			return err
		}
		// Serve is back when the listener is closed. Connections come after it,
		// and until then an answer could still leave.
		<-closed
		return nil
	})
}

func (f *Federation) member(i int, o Options) *Member {
	t := f.t
	t.Helper()
	c := rm.Defaults()
	c.MinAllocation, c.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(8192, 8)
	conf, err := queueconf.ReadCapacity([]queueconf.Property{
		{
			Name:  "yarn.scheduler.capacity.root.queues",
			Value: "default,other",
		},
		{Name: "yarn.scheduler.capacity.root.default.capacity", Value: "70"},
		{
			Name:  "yarn.scheduler.capacity.root.other.capacity",
			Value: "30",
		},
		{Name: "yarn.scheduler.capacity.maximum-am-resource-percent", Value: "1"},
	}, queueconf.Options{MaxAllocation: c.MaxAllocation, MaxClusterPriority: 10})
	if err != nil {
		t.Fatal(err)
	}
	c.Queues = conf.Queues
	m := &Member{ID: creel.SubclusterID(fmt.Sprintf("sc-%c", 'a'+i))}
	cfg := rmserver.Config{
		ClusterID:         string(m.ID),
		Machine:           c,
		Epoch:             int64(i+1) * 1000,
		HeartbeatInterval: 50 * time.Millisecond,
		AdminACL:          queues.ACL{Users: []string{"root"}},
		Groups:            func(user string) []string { return []string{user} },
		Proxies:           map[string]rmserver.ProxyRule{"creel": {Hosts: []string{"*"}, Users: []string{"*"}}},
	}
	if o.Change != nil {
		o.Change(i, &cfg)
	}
	time.Sleep(2 * time.Millisecond) // start times stamp application ids, and must differ
	d, ports, err := rmrpc.Open(cfg, rmrpc.Config{
		Client:    "127.0.0.1:0",
		Scheduler: "127.0.0.1:0",
		Tracker:   "127.0.0.1:0",
		Admin:     "127.0.0.1:0",
		RPC:       hrpc.Config{DrainTime: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, string(m.ID), func(ctx context.Context) error { return d.Run(ctx, ports.Run) })
	<-d.Ready()
	mux := chi.NewRouter()
	rmrest.New(d, rmrest.Config{MaxContainer: c.MaxAllocation}).Mount(mux)
	m.D = d
	m.WebAddress, _ = web(t, string(m.ID)+"'s web port", mux)
	d.SetAddresses(rmserver.Addresses{Web: m.WebAddress})
	farm, err := nmrpc.New(
		nmrpc.Config{
			Tracker: d.Addresses().Tracker,
			Nodes:   o.Nodes,
			First:   i * o.Nodes,
			Eager:   time.Millisecond,
			RunTime: time.Hour,
			Seed:    uint64(i + 1),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "nodes of "+string(m.ID), farm.Run)
	<-farm.Ready()
	a := d.Addresses()
	m.Client, m.Admin, m.Web = relay(t, a.Client), relay(t, a.Admin), relay(t, m.WebAddress)
	agent := &remote.Agent{
		Store:  f.Store,
		Probe:  remote.WebProbe(m.WebAddress),
		Every:  50 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
		// The lease is long: these tests are about what routers find out by themselves.
		Member: subcluster.Member{
			ID:    m.ID,
			Epoch: d.Started().UnixMilli(),
			Lease: time.Hour,
			Addresses: subcluster.Addresses{
				Client:    m.Client.Address,
				Scheduler: a.Scheduler,
				Admin:     m.Admin.Address,
				Tracker:   a.Tracker,
				Web:       m.Web.Address,
			},
		},
	}
	run(t, "membership of "+string(m.ID), agent.Run)
	return m
}

// NewApplicationID returns an application id of the member that nobody had.
func (m *Member) NewApplicationID() creel.ApplicationID {
	id, err := m.D.NewApplicationIDs(1)
	if err != nil {
		panic(err) // two thousand million ids are used
	}
	return id
}

// Cut takes a member off the network as routers see it; Mend brings it back.
func (m *Member) Cut() {
	m.Client.Cut()
	m.Admin.Cut()
	m.Web.Cut()
}

// Mute lets routers reach a member without hearing from it.
func (m *Member) Mute() {
	m.Client.Mute()
	m.Admin.Mute()
	m.Web.Mute()
}

// Mend undoes Cut and Mute.
func (m *Member) Mend() {
	m.Client.Mend()
	m.Admin.Mend()
	m.Web.Mend()
}

// App asks the member itself, past every router.
func (m *Member) App(ctx context.Context, id creel.ApplicationID) (rm.AppView, bool) {
	var a rm.AppView
	var ok bool
	if err := m.D.Query(ctx, func(m *rm.Machine, _ time.Time) { a, ok = m.App(id) }); err != nil {
		return a, false
	}
	return a, ok
}

// A Point is a place between two steps of a submission.
type Point int

// The points, in the order in which a submission comes by.
const (
	BeforeClaim Point = iota // nothing has happened yet
	AfterClaim               // the home is written, the member knows nothing
	AfterMove                // a first home was left, the second knows nothing
)

// Router is one router with its servers.
type Router struct {
	Server        *server.Server
	Client, Admin string // addresses
	Web           string // address
	stops         []func()
	point         atomic.Int32 // 1 + the Point at which to stop
	reached       chan struct{}
	dead          chan struct{}
	once, arrived sync.Once
}

// HoldAt makes the next submission stop for ever at a point; the channel is
// closed when it has come there. Kill the router then.
func (r *Router) HoldAt(p Point) <-chan struct{} {
	r.point.Store(int32(p) + 1)
	return r.reached
}

// Kill ends the router at once: its connections are cut, and what it was doing
// is never done.
func (r *Router) Kill() {
	r.once.Do(func() { close(r.dead) })
	for _, stop := range r.stops {
		stop()
	}
}

// homes passes to the store, by the points.
type homes struct {
	router.Homes
	r *Router
}

var errDead = fmt.Errorf("this router is dead")

func (h homes) at(p Point) error {
	if h.r.point.Load() == int32(p)+1 {
		h.r.arrived.Do(func() { close(h.r.reached) })
		<-h.r.dead
		return errDead
	}
	return nil
}

func (h homes) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
) (creel.SubclusterID, int64, error) {
	if err := h.at(BeforeClaim); err != nil {
		return "", 0, err
	}
	home, number, err := h.Homes.Claim(ctx, app, member)
	if dead := h.at(AfterClaim); dead != nil {
		return "", 0, dead
	}
	return home, number, err
}

func (h homes) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
) (creel.SubclusterID, error) {
	home, err := h.Homes.Move(ctx, app, from, to, number)
	if dead := h.at(AfterMove); dead != nil {
		return "", dead
	}
	return home, err
}

func (f *Federation) router(o Options) *Router {
	t := f.t
	t.Helper()
	r := &Router{reached: make(chan struct{}), dead: make(chan struct{})}
	known := cache.New(f.Store, cache.Config{})
	watcher := watch.New(f.Store, watch.Config{Poll: 20 * time.Millisecond, OnChange: known.Changed})
	pool := remote.NewPool(
		remote.Config{
			User:      "creel",
			KindOf:    yarnrpc.KindOf,
			Trips:     o.Trips,
			OpenFor:   o.OpenFor,
			Changed:   o.Breaker,
			Deadlines: [3]time.Duration{time.Minute, time.Minute, time.Minute},
		},
	)
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Server = server.New(server.Config{
		View: watcher.View, Homes: homes{known, r}, Pool: pool, Seed: 1, Log: o.Log,
		Known: routerrpc.Known, Disown: routerrpc.Disown,
	})
	serve := func(what string, s hrpc.Service) string {
		listening, err := hrpc.NewServer(
			hrpc.Config{
				Services:  []hrpc.Service{s},
				Simple:    true,
				ErrorOf:   yarnrpc.ErrorOf,
				DrainTime: time.Millisecond,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r.stops = append(r.stops, run(t, what, func(ctx context.Context) error { return listening.Run(ctx, l) }))
		return l.Addr().String()
	}
	r.Client = serve("router's client port", routerrpc.Service(r.Server))
	r.Admin = serve("router's admin port", routerrpc.AdminService(r.Server))
	mux := chi.NewRouter()
	rest.New(r.Server, rest.Config{Started: time.Now(), Log: o.Log}).Mount(mux)
	if err := dash.Mount(mux); err != nil {
		t.Fatal(err)
	}
	var stop func()
	r.Web, stop = web(t, "router's web port", mux)
	r.stops = append(r.stops, stop, run(t, "router's view", watcher.Run))
	t.Cleanup(func() { r.once.Do(func() { close(r.dead) }) })
	return r
}

// Until polls a condition; only a hang of the whole test ends it otherwise.
func (f *Federation) Until(what string, ok func() bool) {
	f.t.Helper()
	for !ok() {
		if err := f.t.Context().Err(); err != nil {
			f.t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// As is a client of a router by RPC.
func (f *Federation) As(r *Router, user string) yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(f.RPC, r.Client, hrpc.Login{User: user})
}

// AdminOf is an administrator of a router by RPC.
func (f *Federation) AdminOf(r *Router, user string) yarnrpc.ResourceManagerAdministrationProtocolClient {
	return yarnrpc.NewResourceManagerAdministrationProtocolClient(f.RPC, r.Admin, hrpc.Login{User: user})
}

// Context is a small submission: an unmanaged application, which needs no room.
func Context(id creel.ApplicationID, name string) *yarnpb.ApplicationSubmissionContextProto {
	unmanaged, kind, queue := true, "TEST", "default"
	return &yarnpb.ApplicationSubmissionContextProto{
		ApplicationId:   yarnpb.FromApplicationID(id),
		ApplicationName: &name,
		ApplicationType: &kind,
		Queue:           &queue,
		UnmanagedAm:     &unmanaged,
		AmContainerSpec: &yarnpb.ContainerLaunchContextProto{},
		Resource:        yarnpb.FromResource(creel.NewResource(128, 1)),
		Priority:        yarnpb.FromPriority(0),
	}
}

// Homes are the members that know an application.
func (f *Federation) Homes(id creel.ApplicationID) (out []creel.SubclusterID) {
	for _, m := range f.Members {
		if _, ok := m.App(f.t.Context(), id); ok {
			out = append(out, m.ID)
		}
	}
	return out
}

// Member finds one by its id.
func (f *Federation) Member(id creel.SubclusterID) *Member {
	for _, m := range f.Members {
		if m.ID == id {
			return m
		}
	}
	f.t.Fatalf("no member %q", id)
	return nil
}
