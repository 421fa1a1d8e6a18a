// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/amrmproxy/remote"
	proxyrpc "github.com/creelrm/creel/amrmproxy/rpc"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/amrmproxy/stored"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// federation is real ResourceManagers with simulated nodes, a store in memory,
// and proxies, all over loopback sockets.
type federation struct {
	t      testing.TB
	ids    []creel.SubclusterID
	rms    map[creel.SubclusterID]*cluster
	store  *memory.Store
	client *hrpc.Client
	mu     sync.Mutex
	view   *subcluster.View
	doc    string
	clean  []func()
	files  *keys.HadoopFiles // of foreign members; nil: none
	relay  *proxyrpc.Relay   // of the last proxy
	places bool              // members serve distributed scheduling, and proxies place containers
}

type cluster struct {
	d       *rmserver.Server
	cfg     rmserver.Config
	ports   rmrpc.Config
	stopRM  func()
	nodes   int
	foreign bool // it shares no keys, as Hadoop's
}

var secret = []statestore.Key{{ID: 1, Secret: []byte("a secret of the cluster, long enough")}}

func secrets(context.Context) ([]statestore.Key, error) { return secret, nil }

// byHeadroom shares asks over every member with free resources, also asks that fit at home.
const byHeadroom = `{"split":{"policy":"locality","headroomAlpha":1}}`

// found starts a federation; nodes are the numbers of 8 GB nodes of each member.
func found(t testing.TB, policy string, nodes ...int) *federation {
	t.Helper()
	return foundWith(t, false, policy, nodes...)
}

// foundWith starts a federation. places turns distributed scheduling on: each node has a queue of 5 opportunistic
// containers.
func foundWith(t testing.TB, places bool, policy string, nodes ...int) *federation {
	t.Helper()
	f := &federation{
		places: places,

		t:   t,
		rms: map[creel.SubclusterID]*cluster{},
		doc: policy,
		store: memory.New(
			memory.NewState("test", nil),
			time.Now,
		),
		client: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
	}
	t.Cleanup(f.end)
	for i, n := range nodes {
		id := creel.SubclusterID("sc-" + string(rune('a'+i)))
		m := rm.Defaults()
		m.MinAllocation, m.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(8192, 8)
		m.Queues.Root.Children[0].MaxAMPercent = 1
		m.Queues.Root.Children[0].UserFactor = 10
		c := &cluster{
			nodes: n,
			ports: rmrpc.Config{
				Client:    "127.0.0.1:0",
				Scheduler: "127.0.0.1:0",
				Tracker:   "127.0.0.1:0",
				Admin:     "127.0.0.1:0",
			},
			cfg: rmserver.Config{
				ClusterID: string(id),
				Machine:   m,
				Epoch: int64(
					i+1,
				) * 1000,
				HeartbeatInterval: 20 * time.Millisecond,
				Groups:            groups.New(func(user string) []string { return []string{user} }, time.Minute),
			},
		}
		node := nmserver.Config{Eager: time.Millisecond, RunTime: time.Hour}
		if places {
			o := opportunistic.Defaults()
			o.Period, o.NodesUsed = time.Millisecond, max(o.NodesUsed, n)
			c.cfg.Machine.Opportunistic, c.ports.Distributed, node.Queue.Length = &o, true, 5
		}
		f.ids = append(f.ids, id)
		f.rms[id] = c
		f.startRM(id)
		farm, err := nmrpc.New(
			nmrpc.Config{
				Tracker: c.d.Addresses().Tracker,
				Nodes:   n,
				First:   i * 100,
				Config:  node,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		f.clean = append(f.clean, background(t, "nodes", farm.Run))
		<-farm.Ready()
	}
	f.look()
	return f
}

func (f *federation) startRM(id creel.SubclusterID) {
	f.t.Helper()
	c := f.rms[id]
	d, ports, err := rmrpc.Open(c.cfg, c.ports)
	if err != nil {
		f.t.Fatal(err)
	}
	c.d = d
	a := d.Addresses()
	c.ports.Client, c.ports.Scheduler, c.ports.Tracker, c.ports.Admin = a.Client, a.Scheduler, a.Tracker, a.Admin // the same after a restart
	c.stopRM = sync.OnceFunc(
		background(f.t, "resource manager", func(ctx context.Context) error { return d.Run(ctx, ports.Run) }),
	)
	f.clean = append(f.clean, c.stopRM)
	<-d.Ready()
	if c.foreign {
		return
	}
	if err := keys.Publish(context.Background(), f.store, id, d.AMRMKeys(), secret); err != nil {
		f.t.Fatal(err)
	}
	var k keys.NodeKeys
	if f.places {
		k.NM, k.Container = rmserver.Distributed{Server: d}.SigningKeys()
		k.RMIdentifier, k.Epoch = rmserver.Distributed{Server: d}.Start()
	}
	if err := keys.PublishNodeKeys(context.Background(), f.store, id, k, secret); err != nil {
		f.t.Fatal(err)
	}
}

// look makes a new view, as the federation's watch would; lost are the missing members.
func (f *federation) look(lost ...creel.SubclusterID) {
	var members []subcluster.Status
	for _, id := range f.ids {
		c := f.rms[id]
		st := subcluster.Status{State: subcluster.StateActive, Reason: "heartbeat 1s ago"}
		if slices.Contains(lost, id) {
			st.State = subcluster.StateLost
		}
		a := c.d.Addresses()
		st.ID, st.Addresses = id, subcluster.Addresses{
			Client:    a.Client,
			Scheduler: a.Scheduler,
			Tracker:   a.Tracker,
			Admin:     a.Admin,
		}
		st.Load.Metrics = subcluster.ClusterMetrics{
			AvailableMB:           int64(c.nodes) * 8192,
			AvailableVirtualCores: int64(c.nodes) * 8,
			TotalMB:               int64(c.nodes) * 8192,
			TotalVirtualCores:     int64(c.nodes) * 8,
		}
		members = append(members, st)
	}
	v := subcluster.NewView(
		time.Now(),
		members,
		[]subcluster.Policy{{Queue: "root", Version: 1, Document: []byte(f.doc)}},
	)
	f.mu.Lock()
	f.view = v
	f.mu.Unlock()
}

func (f *federation) seen() *subcluster.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

func (f *federation) end() {
	f.client.Close()
	for i := len(f.clean) - 1; i >= 0; i-- {
		f.clean[i]()
	}
}

func background(t testing.TB, what string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s ended with %v", what, err)
		}
	}
}

// proxy is one running proxy.
type proxy struct {
	*server.Server
	address string
	stop    func()
}

func (f *federation) proxy() *proxy {
	f.t.Helper()
	calls := remote.New(f.seen, login.Login{}, nil, hrpc.ClientConfig{})
	records := &stored.Records{Records: f.store, Secrets: secrets, Random: rand.Reader}
	known := keys.NewCache(f.store, secrets, f.seen, f.files)
	var issuer amrmproxy.Issuer
	if f.places {
		issuer = known.Issuer()
		must(0, known.Refresh(context.Background()))
	}
	p, err := server.New(
		server.Config{
			Issuer:  issuer,
			Name:    "proxy",
			Members: calls,
			Clients: calls,
			Store:   records,
			Sealer:  records,
			View:    f.seen,
			Driver: amrmproxy.DriverConfig{
				Session: amrmproxy.Config{
					UAMHeartbeat: 30 * time.Millisecond,
					SlowAfter:    300 * time.Millisecond,
					KeepAlive:    time.Second,
					Retry:        10 * time.Millisecond,
					RetryMost:    100 * time.Millisecond,
				},
				SilentAfter: 300 * time.Millisecond,
			},
		},
	)
	if err != nil {
		f.t.Fatal(err)
	}
	f.relay = &proxyrpc.Relay{Homes: f.store, Foreign: known.Foreign, Login: calls.Login}
	handler, err := proxyrpc.NewServer(
		p,
		known,
		f.relay,
		hrpc.Config{DrainTime: time.Second},
	)
	if err != nil {
		f.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	stopProxy := background(f.t, "proxy", p.Run)
	stopServer := background(f.t, "handler", func(ctx context.Context) error { return handler.Run(ctx, l) })
	out := &proxy{Server: p, address: l.Addr().String(), stop: sync.OnceFunc(func() {
		stopProxy() // answers waiting calls
		stopServer()
		calls.Close()
	})}
	f.clean = append(f.clean, out.stop)
	return out
}

func (f *federation) as(id creel.SubclusterID, user string) yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(f.client, f.rms[id].d.Addresses().Client, hrpc.Login{User: user})
}

// am plays an application's AM: unmanaged at home, so that its token
// stands in its report, and it keeps its table as Hadoop's client library does.
type am struct {
	f       *federation
	app     creel.ApplicationID
	home    creel.SubclusterID
	cred    *hrpc.Credential
	am      yarnrpc.ApplicationMasterProtocolClient
	lastID  int32
	want    map[int32]int32
	dirty   map[int32]bool
	release []*pb.ContainerIdProto
	has     map[creel.ContainerID]bool
	seen    map[creel.ContainerID]bool
	nodes   map[string]bool // with an NM token
	limit   creel.Resource
	cluster int32
	again   int // how often it had to register again
}

func (f *federation) submit(home creel.SubclusterID, at *proxy) *am {
	f.t.Helper()
	ctx := context.Background()
	m := &am{
		f:     f,
		home:  home,
		want:  map[int32]int32{},
		dirty: map[int32]bool{},
		has:   map[creel.ContainerID]bool{},
		seen:  map[creel.ContainerID]bool{},
		nodes: map[string]bool{},
	}
	c := f.as(home, "ann")
	id := must(c.GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
	must(
		c.SubmitApplication(
			ctx,
			&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId:   id,
				ApplicationName: proto.String("story"),
				Queue:           proto.String("default"),
				UnmanagedAm:     proto.Bool(true),
				AmContainerSpec: &pb.ContainerLaunchContextProto{},
				Resource: pb.FromResource(
					creel.NewResource(256, 1),
				),
				KeepContainersAcrossApplicationAttempts: proto.Bool(true),
			}},
		),
	)
	m.app = pb.ToApplicationID(id)
	f.until("the AM is launched", func() bool {
		r := must(
			c.GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: id}),
		).GetApplicationReport()
		if t := r.GetAmRmToken(); t != nil {
			m.cred = &hrpc.Credential{Identifier: t.GetIdentifier(), Password: t.GetPassword(), Kind: t.GetKind()}
		}
		return m.cred != nil
	})
	if at != nil {
		m.connect(at.address)
	} else {
		m.connect(f.rms[home].d.Addresses().Scheduler)
	}
	return m
}

func must[T any](t T, err error) T {
	if err != nil {
		panic(err)
	}
	return t
}

// until waits for something that other goroutines bring about.
func (f *federation) until(what string, done func() bool) {
	f.t.Helper()
	for range 30_000 { // it counts looks, of which a slow machine needs no more
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.t.Fatalf("condition not met in time: %s", what)
}

func (m *am) connect(address string) {
	m.am = yarnrpc.NewApplicationMasterProtocolClient(m.f.client, address, hrpc.Login{Credential: m.cred})
}

func (m *am) register() *pb.RegisterApplicationMasterResponseProto {
	m.f.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r, err := m.am.RegisterApplicationMaster(
			context.Background(),
			&pb.RegisterApplicationMasterRequestProto{
				Host:        proto.String("am"),
				RpcPort:     proto.Int32(-1),
				TrackingUrl: proto.String(""),
			},
		)
		if err == nil {
			m.lastID = 0
			return r
		}
		// A proxy that is not ready yet answers so, and Hadoop's client calls again.
		if !strings.Contains(err.Error(), "StandbyException") || time.Now().After(deadline) {
			m.f.t.Fatalf("register: %v", err)
		}
	}
}

// opportunisticFrom is the least priority of asks for opportunistic containers.
const opportunisticFrom = 50

func (m *am) ask(p, n int32) { m.want[p], m.dirty[p] = n, true }

// heartbeat is one allocate, with the error handling of Hadoop's client: on demand it registers again, and then sends
// everything again.
func (m *am) heartbeat() {
	m.f.t.Helper()
	for range 10_000 {
		a := &pb.AllocateRequestProto{
			ResponseId: proto.Int32(m.lastID),
			Release:    m.release,
			Progress:   proto.Float32(0.5),
		}
		for p, n := range m.want {
			if m.dirty[p] {
				a.Ask = append(
					a.Ask,
					&pb.ResourceRequestProto{
						Priority:      pb.FromPriority(p),
						ResourceName:  proto.String("*"),
						NumContainers: proto.Int32(n),
						Capability:    pb.FromResource(creel.NewResource(1024, 1)),
					},
				)
				if p >= opportunisticFrom {
					a.Ask[len(a.Ask)-1].ExecutionTypeRequest = &pb.ExecutionTypeRequestProto{
						ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum(),
					}
				}
			}
		}
		r, err := m.am.Allocate(context.Background(), a)
		switch {
		case errors.Is(err, creel.ErrNotRegistered):
			m.again++
			m.register()
			for p := range m.want {
				m.dirty[p] = true
			}
			continue
		case errors.Is(err, creel.ErrBusy), errors.Is(err, creel.ErrUnavailable), errors.Is(err, creel.ErrStandby):
			time.Sleep(10 * time.Millisecond) // standby: a proxy listens before it runs
			continue
		case err != nil:
			m.f.t.Fatalf("allocate: %v", err)
		}
		m.dirty, m.release = map[int32]bool{}, nil
		m.take(r)
		return
	}
	m.f.t.Fatal("allocate never went through")
}

func (m *am) take(r *pb.AllocateResponseProto) {
	m.f.t.Helper()
	m.lastID = r.GetResponseId()
	for _, n := range r.NmTokens {
		m.nodes[n.GetNodeId().GetHost()] = true
	}
	for _, c := range r.AllocatedContainers {
		id := pb.ToContainerID(c.Id)
		if m.seen[id] {
			m.f.t.Errorf("%v was told twice", id)
		}
		if p := c.GetPriority().GetPriority(); m.want[p] == 0 {
			m.f.t.Errorf("over-granted: %v", id)
		} else {
			m.want[p]--
		}
		if !m.nodes[c.GetNodeId().GetHost()] {
			m.f.t.Errorf("%v came without a token for its node %s", id, c.GetNodeId().GetHost())
		}
		m.seen[id], m.has[id] = true, true
	}
	for _, s := range r.CompletedContainerStatuses {
		id := pb.ToContainerID(s.ContainerId)
		if !m.has[id] {
			m.f.t.Errorf("the end of %v, which the AM does not have", id)
		}
		delete(m.has, id)
	}
	m.limit, m.cluster = pb.ToResource(r.Limit), r.GetNumClusterNodes()
}

// heartbeatUntil heartbeats until done.
func (m *am) heartbeatUntil(what string, done func() bool) {
	m.f.t.Helper()
	m.f.until(what, func() bool { m.heartbeat(); return done() })
}

// at counts the containers a member granted, by the epoch in their ids.
func (m *am) at(id creel.SubclusterID) (n int) {
	base := m.f.rms[id].cfg.Epoch
	for c := range m.has {
		if e := c.Epoch(); e >= base && e < base+1000 {
			n++
		}
	}
	return n
}

func (m *am) finish() {
	m.f.t.Helper()
	m.f.until("the AM is unregistered", func() bool {
		r, err := m.am.FinishApplicationMaster(
			context.Background(),
			&pb.FinishApplicationMasterRequestProto{
				FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			},
		)
		if err != nil {
			m.f.t.Fatalf("finish: %v", err)
		}
		return r.GetIsUnregistered()
	})
}

// state of the application, or of its UAM, in a member.
func (m *am) state(id creel.SubclusterID) creel.ApplicationState {
	r, err := m.f.as(id, "ann").
		GetApplicationReport(context.Background(), &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(m.app)})
	if err != nil {
		return 0
	}
	return creel.ApplicationState(r.GetApplicationReport().GetYarnApplicationState())
}

func (m *am) noRecords() {
	m.f.t.Helper()
	m.f.until(
		"the UAM record is gone",
		func() bool { return len(must(m.f.store.UAMRecordsOf(context.Background(), m.app))) == 0 },
	)
}

func TestAnAMSpreadsOverTwoResourceManagers(t *testing.T) {
	f := found(t, `{"split":{"policy":"balanced"}}`, 1, 3) // home has 8 places, sc-b 24
	p := f.proxy()
	m := f.submit("sc-a", p)
	if r := m.register(); !strings.HasSuffix(r.GetQueue(), "default") || r.GetMaximumCapability().GetMemory() != 8192 {
		t.Errorf("registered: %v", r)
	}
	m.ask(1, 24)
	m.heartbeatUntil("all 24 are granted", func() bool { return m.want[1] == 0 })
	if a, b := m.at("sc-a"), m.at("sc-b"); a == 0 || b == 0 || a+b != 24 {
		t.Errorf("%d containers from sc-a, %d from sc-b", a, b)
	}
	if m.state("sc-b") != creel.AppRunning {
		t.Errorf("the UAM is %s", m.state("sc-b"))
	}
	m.heartbeatUntil("the cluster is counted whole", func() bool { return m.cluster == 4 })
	// Give back a few of each, by their owners, and want as many again.
	ids := sorted(m.has)
	for _, id := range []creel.ContainerID{ids[0], ids[len(ids)-1]} {
		m.release = append(m.release, pb.FromContainerID(id))
	}
	m.heartbeatUntil("both are ended", func() bool { return len(m.has) == 22 })
	m.finish()
	f.until("the UAM has finished", func() bool { return m.state("sc-b") == creel.AppFinished })
	m.noRecords()
	if s := p.Stats(); s.Launches != 1 || s.LaunchFailures != 0 {
		t.Errorf("%+v", s)
	}
}

func sorted(m map[creel.ContainerID]bool) (ids []creel.ContainerID) {
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, creel.ContainerID.Compare)
	return ids
}

func TestBroadcastGrantsAtMostTheAsk(t *testing.T) {
	f := found(t, `{"split":{"policy":"broadcast"}}`, 2, 2, 2)
	p := f.proxy()
	m := f.submit("sc-b", p)
	m.register()
	total := 0
	for range 5 {
		m.ask(1, 5)
		m.heartbeatUntil("five more are granted", func() bool { return m.want[1] == 0 }) // over-grants fail in take
		total += 5
	}
	for range 10 {
		m.heartbeat()
	}
	if len(m.has) != total {
		t.Errorf("has %d of %d", len(m.has), total)
	}
	// Late grants were released: the members run exactly the AM's containers.
	f.until("the surplus is gone", func() bool {
		n := 0
		for _, id := range f.ids {
			r := must(
				f.as(id, "ann").
					GetApplicationReport(context.Background(), &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(m.app)}),
			)
			n += int(r.GetApplicationReport().GetAppResource_Usage().GetNumUsedContainers())
		}
		m.heartbeat()
		return n == total
	})
	m.finish()
	m.noRecords()
}

func TestAProxyIsReplacedInTheMiddle(t *testing.T) {
	f := found(t, byHeadroom, 1, 2)
	first := f.proxy()
	m := f.submit("sc-a", first)
	m.register()
	m.ask(1, 12)
	m.heartbeatUntil("12 are granted", func() bool { return m.want[1] == 0 })
	before := m.at("sc-b")
	if before == 0 {
		t.Fatal("nothing from sc-b")
	}
	first.stop()
	second := f.proxy()
	m.connect(second.address)
	m.ask(1, 6)
	m.heartbeatUntil("6 more are granted", func() bool { return m.want[1] == 0 })
	if m.again != 1 {
		t.Errorf("the AM registered again %d times", m.again)
	}
	// The second proxy speaks for the first one's containers in both members.
	m.release = nil
	ids := sorted(m.has)
	m.release = append(m.release, pb.FromContainerID(ids[0]), pb.FromContainerID(ids[len(ids)-1]))
	n := len(ids)
	m.heartbeatUntil("both are ended", func() bool { return len(m.has) == n-2 })
	m.finish()
	f.until("the UAM has finished", func() bool { return m.state("sc-b") == creel.AppFinished })
	m.noRecords()
	if s := second.Stats(); s.Launches != 0 {
		t.Errorf("the second proxy launched %d UAMs", s.Launches)
	}
	// The answer to the goodbye was lost with the second proxy; the third knows nothing of
	// the AM, and asks its home.
	second.stop()
	m.connect(f.proxy().address)
	m.finish()
	if _, err := m.am.RegisterApplicationMaster(context.Background(), &pb.RegisterApplicationMasterRequestProto{
		Host: proto.String("am"),
	}); !errors.Is(err, creel.ErrAttemptNotFound) {
		t.Errorf("a registration after the end is answered %v", err)
	}
	m.noRecords()
}

func TestALostSecondaryHasItsAsksMoved(t *testing.T) {
	f := found(t, `{"split":{"policy":"broadcast"}}`, 4, 1)
	p := f.proxy()
	m := f.submit("sc-a", p)
	m.register()
	m.ask(1, 2)
	m.heartbeatUntil("2 are granted", func() bool { return m.want[1] == 0 })
	f.until("the UAM runs", func() bool { m.heartbeat(); return m.state("sc-b") == creel.AppRunning })
	f.rms["sc-b"].stopRM()
	f.look("sc-b")
	m.ask(1, 20)
	m.heartbeatUntil("home grants what sc-b cannot", func() bool { return m.want[1] == 0 })
	if m.cluster != 4 {
		t.Errorf("%d nodes are counted, though sc-b is gone", m.cluster)
	}
	m.finish()
}

func TestAKilledApplicationLeavesNoUAM(t *testing.T) {
	f := found(t, `{"split":{"policy":"broadcast"}}`, 1, 1)
	p := f.proxy()
	m := f.submit("sc-a", p)
	m.register()
	m.ask(1, 3)
	m.heartbeatUntil(
		"3 are granted and the UAM runs",
		func() bool { return m.want[1] == 0 && m.state("sc-b") == creel.AppRunning },
	)
	// Killed at its home, without the proxy's knowledge; the AM dies with it silently.
	c := f.as("sc-a", "ann")
	f.until("it is killed", func() bool {
		return must(
			c.ForceKillApplication(
				context.Background(),
				&pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(m.app)},
			),
		).GetIsKillCompleted()
	})
	f.until("the UAM is killed", func() bool { return m.state("sc-b") == creel.AppKilled })
	m.noRecords()
}

func TestTheHomeRestartsUnderARunningAM(t *testing.T) {
	f := found(t, byHeadroom, 2, 2)
	// With a journal, so that its keys and applications outlive it.
	f.rms["sc-a"].stopRM()
	f.rms["sc-a"].cfg.Dir = t.TempDir()
	f.startRM("sc-a")
	p := f.proxy()
	m := f.submit("sc-a", p)
	m.register()
	m.ask(1, 10)
	m.heartbeatUntil("10 are granted", func() bool { return m.want[1] == 0 })
	f.rms["sc-a"].stopRM()
	f.startRM("sc-a")
	m.ask(1, 6)
	m.heartbeatUntil("6 more are granted", func() bool { return m.want[1] == 0 })
	if m.again != 0 {
		t.Errorf("the AM noticed: it registered again %d times", m.again)
	}
	m.finish()
	f.until("the UAM has finished", func() bool { return m.state("sc-b") == creel.AppFinished })
	m.noRecords()
}

// The second dies with a UAM in it, the AM ends, and only then does the
// second come back, with its journal: the UAM must not stay.
func TestSecondaryReturningAfterEndHasNoUAM(t *testing.T) {
	f := found(t, `{"split":{"policy":"broadcast"}}`, 1, 1)
	f.rms["sc-b"].stopRM()
	f.rms["sc-b"].cfg.Dir = t.TempDir()
	f.startRM("sc-b")
	p := f.proxy()
	m := f.submit("sc-a", p)
	m.register()
	m.ask(1, 2)
	m.heartbeatUntil("2 are granted", func() bool { return m.want[1] == 0 })
	f.until("the UAM runs", func() bool { m.heartbeat(); return m.state("sc-b") == creel.AppRunning })
	f.rms["sc-b"].stopRM()
	f.look("sc-b")
	m.finish()
	f.startRM("sc-b")
	f.look()
	f.until(
		"the UAM has ended",
		func() bool { s := m.state("sc-b"); return s == creel.AppFinished || s == creel.AppKilled },
	)
	m.noRecords()
}

func TestProxyRefusesUnknownCalls(t *testing.T) {
	f := found(t, `{}`, 1)
	p := f.proxy()
	m := f.submit("sc-a", p)
	ctx := context.Background()
	if _, err := m.am.Allocate(ctx, &pb.AllocateRequestProto{}); !errors.Is(err, creel.ErrNotRegistered) {
		t.Errorf("allocate before register: %v", err)
	}
	m.register()
	var remote *hrpc.RemoteError
	if _, err := m.am.Allocate(
		ctx,
		&pb.AllocateRequestProto{ResponseId: proto.Int32(41)},
	); !errors.As(err, &remote) || remote.Class != yarnrpc.ClassInvalidMasterRequest ||
		!strings.Contains(remote.Message, "expect responseId to be 0 but get 41") {
		t.Errorf("a wrong response id: %v", err)
	}
	if _, err := m.am.RegisterApplicationMaster(
		ctx,
		&pb.RegisterApplicationMasterRequestProto{Host: proto.String("other")},
	); !errors.As(err, &remote) ||
		remote.Class != yarnrpc.ClassInvalidMasterRequest {
		t.Errorf("a second registration: %v", err)
	}
	// A refusal by home is passed on under home's own class.
	bad := &pb.AllocateRequestProto{
		Ask: []*pb.ResourceRequestProto{
			{
				Priority:      pb.FromPriority(1),
				ResourceName:  proto.String("*"),
				NumContainers: proto.Int32(1),
				Capability:    pb.FromResource(creel.NewResource(1<<20, 1)),
			},
		},
	}
	if _, err := m.am.Allocate(ctx, bad); !errors.As(err, &remote) || remote.Class != yarnrpc.ClassInvalidResource {
		t.Errorf("a container larger than any node: %v", err)
	}
	m.ask(1, 1)
	m.heartbeatUntil("it goes on after that", func() bool { return m.want[1] == 0 })

	forged := *m.cred
	forged.Password = []byte("guess")
	client := yarnrpc.NewApplicationMasterProtocolClient(f.client, p.address, hrpc.Login{Credential: &forged})
	if _, err := client.Allocate(ctx, &pb.AllocateRequestProto{}); err == nil {
		t.Error("a forged token was let in")
	}
	foreign := *m.cred
	foreign.Identifier = []byte{1, 2, 3}
	client = yarnrpc.NewApplicationMasterProtocolClient(f.client, p.address, hrpc.Login{Credential: &foreign})
	if _, err := client.Allocate(ctx, &pb.AllocateRequestProto{}); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("an unreadable token: %v", err)
	}
	simple := yarnrpc.NewApplicationMasterProtocolClient(f.client, p.address, hrpc.Login{User: "ann"})
	if _, err := simple.Allocate(ctx, &pb.AllocateRequestProto{}); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("no token: %v", err)
	}
	// Distributed scheduling is off: its protocol is unknown, as on such a ResourceManager.
	distributed := yarnrpc.NewDistributedSchedulingAMProtocolClient(f.client, p.address, hrpc.Login{Credential: m.cred})
	if _, err := distributed.AllocateForDistributedScheduling(
		ctx,
		&pb.DistributedSchedulingAllocateRequestProto{},
	); !errors.As(err, &remote) ||
		remote.Class != hrpc.ClassNoSuchProtocol {
		t.Errorf("distributed scheduling: %v", err)
	}
	m.finish()
	// The answer was lost: the same again, not an error.
	m.finish()
}

// While the store does not answer, an AM's calls are refused, and its session waits: it may be the only one that can end
// UAMs of an earlier attempt. Once the store answers, the same session serves.
func TestSessionWaitsForStore(t *testing.T) {
	f := found(t, `{}`, 1)
	calls := remote.New(f.seen, login.Login{}, nil, hrpc.ClientConfig{})
	defer calls.Close()
	store := &brokenStore{}
	store.away.Store(true)
	records := &stored.Records{Records: store, Secrets: secrets}
	p, err := server.New(
		server.Config{Members: calls, Clients: calls, Store: records, Sealer: records, View: f.seen},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer background(t, "proxy", p.Run)()
	refused := func() error {
		answer := make(chan error, 1)
		p.Call(
			server.Caller{
				Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1},
				Home:    "sc-a",
			},
			amrmproxy.FromAM{Allocate: &pb.AllocateRequestProto{}},
			func(_ proto.Message, err error) { answer <- err },
		)
		return <-answer
	}
	f.until("it runs", func() bool {
		err := refused()
		return errors.Is(err, creel.ErrUnavailable) && strings.Contains(err.Error(), "redis is away")
	})
	store.away.Store(false)
	f.until("the session has its record", func() bool {
		err := refused()
		return err != nil && !strings.Contains(err.Error(), "redis is away")
	})
	if n := p.Stats().Sessions; n != 1 {
		t.Errorf("%d sessions serve one attempt", n)
	}
}

// brokenStore has no records, and does not answer while it is away.
type brokenStore struct{ away atomic.Bool }

func (b *brokenStore) err() error {
	if b.away.Load() {
		return errors.New("redis is away")
	}
	return nil
}

func (b *brokenStore) SaveUAMRecord(context.Context, statestore.UAMRecord) (int64, error) {
	return 1, b.err()
}

func (b *brokenStore) UAMRecordsOf(context.Context, creel.ApplicationID) ([]statestore.UAMRecord, error) {
	return nil, b.err()
}

func (b *brokenStore) DropUAMRecord(context.Context, creel.AttemptID) error { return b.err() }

// BenchmarkAllocate is the time of one allocate of an idle AM: to the ResourceManager, through the proxy, and through
// the proxy with a UAM in a second subcluster. The three take turns of 100 calls, so that they see the same machine;
// quiet-* are those of the quietest turn.
func BenchmarkAllocate(b *testing.B) {
	f := found(b, `{"split":{"policy":"broadcast"}}`, 1, 1)
	p := f.proxy()
	const turn = 100
	type way struct {
		name       string
		m          *am
		all        []time.Duration
		p50s, p99s []time.Duration
	}
	ways := []*way{
		{name: "direct", m: f.submit("sc-a", nil)},
		{name: "proxy", m: f.submit("sc-a", p)},
		{name: "uam", m: f.submit("sc-a", p)},
	}
	for _, w := range ways {
		w.m.register()
	}
	uam := ways[2].m
	uam.ask(1, 1)
	uam.heartbeatUntil("granted", func() bool { return uam.want[1] == 0 && uam.state("sc-b") == creel.AppRunning })
	for b.Loop() {
		for _, w := range ways {
			times := make([]time.Duration, turn)
			for i := range times {
				start := time.Now()
				w.m.heartbeat()
				times[i] = time.Since(start)
			}
			w.all = append(w.all, times...)
			slices.Sort(times)
			w.p50s, w.p99s = append(w.p50s, times[turn/2]), append(w.p99s, times[turn-2])
		}
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	for _, w := range ways {
		slices.Sort(w.all)
		b.ReportMetric(us(w.all[len(w.all)/2]), w.name+"-p50-us")
		b.ReportMetric(us(w.all[len(w.all)*99/100]), w.name+"-p99-us")
		b.ReportMetric(us(slices.Min(w.p50s)), w.name+"-quiet-p50-us")
		b.ReportMetric(us(slices.Min(w.p99s)), w.name+"-quiet-p99-us")
	}
	b.ReportMetric(0, "ns/op")
}

// Home rolls its keys, and the AM's connection stays the one that it logged in on with a token of a key that
// is gone. The proxy has the token that home gave since, and speaks to a home that was restarted with it.
func TestAMOutlivesItsLoginKey(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	f := found(t, byHeadroom, 1)
	home := f.rms["sc-a"]
	home.stopRM()
	home.cfg.Dir, home.cfg.KeyRoll = t.TempDir(), 4*time.Second
	f.startRM("sc-a")
	f.look()
	m := f.submit("sc-a", f.proxy())
	m.register()
	id := must(token.ParseAMRM(m.cred.Identifier))
	m.heartbeatUntil("the key of the AM's token is gone", func() bool {
		_, known := home.d.AMRMKeys().Find(id.KeyID)
		return !known
	})
	home.stopRM()
	f.startRM("sc-a")
	m.ask(1, 1)
	m.heartbeatUntil("a container", func() bool { return len(m.has) == 1 })
	m.finish()
}
