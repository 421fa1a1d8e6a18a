// SPDX-License-Identifier: Apache-2.0

// Package routertest runs the federation of app/daemon/federation in a test, over real sockets, without
// proxies. A test can cut the network between routers and members, delay answers, and stop a router for good between
// any two steps of a submission.
package routertest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/creelrm/creel/subcluster/rm"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
)

// Options configures a federation. The default is two members with two nodes each, and two routers.
type Options struct {
	Members, Routers, Nodes int
	ConfDir                 string // of Hadoop's files; may be empty
	// Settings are further settings, as "key=value".
	Settings []string
	// Change changes a member's configuration before it starts.
	Change func(i int, c *rmserver.Config)
	// Trips is the number of unanswered calls that open a breaker, 3.
	Trips uint32
	// OpenFor is the time for which a breaker stays open, 1 s.
	OpenFor time.Duration
	// GivesParts allows lists by RPC without members that do not answer.
	GivesParts bool
	// LastParts is the time for which lists include the last part of a member that does not answer.
	LastParts time.Duration
	// Log is the routers' log; nil: silent.
	Log *slog.Logger
	// Breaker is called with each new state of a breaker; may be nil.
	Breaker func(creel.SubclusterID, remote.Kind, string)
}

// Federation runs until the test ends.
type Federation struct {
	t       testing.TB
	Store   *memory.Store
	Members []*Member
	Routers []*Router
	RPC     *hrpc.Client
	fed     *federation.Federation
}

// Member is a ResourceManager; routers reach it through relays.
type Member struct {
	ID                 creel.SubclusterID
	D                  *rmserver.Server
	WebAddress         string // without the relay
	Client, Admin, Web *Relay
}

// Start starts a federation and waits until every router sees every member.
func Start(t testing.TB, o Options) *Federation {
	t.Helper()
	o.Members, o.Routers, o.Nodes = cmp.Or(o.Members, 2), cmp.Or(o.Routers, 2), cmp.Or(o.Nodes, 2)
	o.Trips, o.OpenFor = cmp.Or(o.Trips, 3), cmp.Or(o.OpenFor, time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	conf, err := settings.Load(settings.Sources{
		ConfDir: o.ConfDir,
		Env:     func(string) (string, bool) { return "", false },
		Defines: append([]string{
			"yarn.scheduler.minimum-allocation-mb=128",
			"yarn.scheduler.maximum-allocation-mb=8192",
			"yarn.scheduler.maximum-allocation-vcores=8",
			"yarn.cluster.max-application-priority=10",
			"yarn.admin.acl=root",
			"yarn.scheduler.capacity.root.queues=default,other",
			"yarn.scheduler.capacity.root.default.capacity=70",
			"yarn.scheduler.capacity.root.other.capacity=30",
			"yarn.scheduler.capacity.maximum-am-resource-percent=1",
		}, o.Settings...),
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &Federation{
		t:     t,
		Store: memory.New(memory.NewState("test", role.ValidPolicy), time.Now),
		RPC:   hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
	}
	t.Cleanup(func() { f.RPC.Close() })
	for i := range o.Members {
		f.Members = append(f.Members, &Member{ID: creel.SubclusterID(fmt.Sprintf("sc-%c", 'a'+i))})
	}
	for range o.Routers {
		r := &Router{reached: make(chan struct{}), dead: make(chan struct{})}
		t.Cleanup(func() { r.once.Do(func() { close(r.dead) }) })
		f.Routers = append(f.Routers, r)
	}
	f.fed, err = federation.New(t.Context(), federation.Config{
		Subclusters:    o.Members,
		Routers:        o.Routers,
		Nodes:          o.Nodes,
		Name:           func(i int) creel.SubclusterID { return f.Members[i].ID },
		NodeHeartbeat:  50 * time.Millisecond,
		Eager:          time.Millisecond,
		RunTime:        time.Hour,
		Store:          f.Store,
		Settings:       conf,
		WithoutProxies: true,
		Lease:          time.Hour, // long, since these tests check detection by the routers
		Heartbeat:      50 * time.Millisecond,
		Poll:           20 * time.Millisecond,
		Log:            slog.New(slog.DiscardHandler),
		ChangeRM:       func(i int, c *role.RMConfig) { f.changeMember(i, c, o) },
		ChangeRouter:   func(i int, c *role.RouterConfig) { f.changeRouter(i, c, o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, r := range f.Routers { // resume goroutines that wait at a point, so that their router can stop
			r.once.Do(func() { close(r.dead) })
		}
		if err := f.fed.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, m := range f.Members {
		m.D, m.WebAddress = f.fed.RMs[i].Service.Server, f.fed.RMs[i].Address("web")
	}
	for i, r := range f.Routers {
		r.attach(t, f.fed.Routers[i])
	}
	f.Until("every router sees every member with its load", func() bool { return f.complete(int64(o.Nodes)) })
	return f
}

// complete reports whether every router sees every member with a number of nodes.
func (f *Federation) complete(nodes int64) bool {
	for _, r := range f.Routers {
		v := r.Server.View()
		for i := range v.Members {
			if v.Members[i].Load.Metrics.ActiveNodes != nodes {
				return false
			}
		}
	}
	return true
}

// attach sets the router's addresses, and the functions that stop and start its daemon.
func (r *Router) attach(t testing.TB, d *federation.Daemon[*role.Router]) {
	tell := func() {
		r.Server = d.Service.Server
		r.Client, r.Admin, r.Web = d.Address("client"), d.Address("admin"), d.Address("web")
	}
	tell()
	r.start = func() {
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		tell()
	}
	r.kill = func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// changeMember adds relays between a member and the routers, and lets the test change the member's configuration.
func (f *Federation) changeMember(i int, c *role.RMConfig, o Options) {
	m := f.Members[i]
	c.RM.Groups = groups.New(func(user string) []string { return []string{user} }, time.Minute)
	c.Membership.Announce = func(a subcluster.Addresses) subcluster.Addresses {
		m.Client, m.Admin, m.Web = relay(f.t, a.Client), relay(f.t, a.Admin), relay(f.t, a.Web)
		a.Client, a.Admin, a.Web = m.Client.Address, m.Admin.Address, m.Web.Address
		return a
	}
	if o.Change != nil {
		o.Change(i, &c.RM)
	}
}

// changeRouter makes it possible to stop a router at a point, and to end it at once.
func (f *Federation) changeRouter(i int, c *role.RouterConfig, o Options) {
	c.Wrap = func(h server.Homes) server.Homes { return homes{h, f.Routers[i]} }
	c.RPC.DrainTime, c.Site.DrainTime = time.Millisecond, time.Nanosecond
	c.Log, c.Server.Seed, c.Server.GivesParts, c.Server.LastParts = o.Log, 1, o.GivesParts, o.LastParts
	c.Remote.Trips, c.Remote.OpenFor, c.Remote.Changed = o.Trips, o.OpenFor, o.Breaker
	c.Remote.Deadlines = [3]time.Duration{time.Hour, time.Hour, time.Hour}
}

// NewApplicationID returns an unused application id of the member.
func (m *Member) NewApplicationID() creel.ApplicationID {
	id, err := m.D.NewApplicationIDs(1)
	if err != nil {
		panic(err) // all ids are used
	}
	return id
}

// Cut cuts the network between the routers and a member; Mend undoes it.
func (m *Member) Cut() {
	m.Client.Cut()
	m.Admin.Cut()
	m.Web.Cut()
}

// Mute ends connections to a member, so that its answers are lost; Mend undoes it.
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

// App asks the member directly, without a router.
func (m *Member) App(ctx context.Context, id creel.ApplicationID) (rm.AppView, bool) {
	var a rm.AppView
	var ok bool
	if err := m.D.Query(ctx, func(m *rm.Machine, _ time.Time) { a, ok = m.App(id) }); err != nil {
		return a, false
	}
	return a, ok
}

// A Point is a point between two steps of a submission.
type Point int

// The points, in the order of a submission.
const (
	BeforeClaim Point = iota // nothing has been done
	AfterClaim               // the home is recorded, and the member has got no call
	AfterMove                // the first home was left, and the second has got no call
)

// Router is one router with its servers.
type Router struct {
	Server        *server.Server
	Client, Admin string // addresses
	Web           string // address
	kill, start   func()
	point         atomic.Int32 // 1 + the Point at which to stop
	reached       chan struct{}
	dead          chan struct{}
	once, arrived sync.Once
}

// HoldAt makes the next submission stop for ever at a point. The channel is closed when it reaches the point. Then
// kill the router.
func (r *Router) HoldAt(p Point) <-chan struct{} {
	r.point.Store(int32(p) + 1)
	return r.reached
}

// Kill ends the router at once. Its connections are cut, and calls in progress never complete.
func (r *Router) Kill() {
	r.once.Do(func() { close(r.dead) })
	r.kill()
}

// Restart ends the router and starts a new one in its place, without its memory.
func (r *Router) Restart() {
	r.kill()
	r.start()
}

// homes passes calls to the store, with the points around them.
type homes struct {
	server.Homes
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
	placement []byte,
) (creel.SubclusterID, int64, error) {
	if err := h.at(BeforeClaim); err != nil {
		return "", 0, err
	}
	home, number, err := h.Homes.Claim(ctx, app, member, placement)
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
	placement []byte,
) (creel.SubclusterID, error) {
	home, err := h.Homes.Move(ctx, app, from, to, number, placement)
	if dead := h.at(AfterMove); dead != nil {
		return "", dead
	}
	return home, err
}

// Until polls a condition. No condition takes minutes here, and a longer wait would use the time of the package's
// other tests.
func (f *Federation) Until(what string, ok func() bool) {
	f.t.Helper()
	for began := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if err := f.t.Context().Err(); err != nil {
			f.t.Fatalf("waiting until %s: %v", what, err)
		}
		if time.Since(began) > 3*time.Minute {
			f.t.Fatalf("condition not met in time: %s", what)
		}
	}
}

// As returns a client of a router by RPC.
func (f *Federation) As(r *Router, user string) yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(f.RPC, r.Client, hrpc.Login{User: user})
}

// AdminOf returns an administrator's client of a router by RPC.
func (f *Federation) AdminOf(r *Router, user string) yarnrpc.ResourceManagerAdministrationProtocolClient {
	return yarnrpc.NewResourceManagerAdministrationProtocolClient(f.RPC, r.Admin, hrpc.Login{User: user})
}

// Context returns a small submission: an unmanaged application, which needs no container.
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

// Homes returns the members that have an application.
func (f *Federation) Homes(id creel.ApplicationID) (out []creel.SubclusterID) {
	for _, m := range f.Members {
		if _, ok := m.App(f.t.Context(), id); ok {
			out = append(out, m.ID)
		}
	}
	return out
}

// Member returns a member by its id.
func (f *Federation) Member(id creel.SubclusterID) *Member {
	for _, m := range f.Members {
		if m.ID == id {
			return m
		}
	}
	f.t.Fatalf("no member %q", id)
	return nil
}
