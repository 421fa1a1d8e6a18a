// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// AllocOptions is a load of AMs that ask for containers in waves, use each for a time and release it, while nodes
// send heartbeats. The plan's rate counts allocate calls of all AMs together: an AM's heartbeat interval is AMs /
// rate.
type AllocOptions struct {
	Options
	Client, Scheduler, Tracker string // host:port of each protocol

	Nodes      int
	First      int
	NodePeriod time.Duration  // between a node's heartbeats; 0: 1 s
	Total      creel.Resource // of each node; 0: enough for many containers

	AMs   int // unmanaged, with AMRM tokens from the ResourceManager
	Wave  int // containers requested in each call
	Hold  time.Duration
	Size  creel.Resource // of a container; 0: 128 MB and 1 core
	Queue string
	// Held containers are acquired before the load starts, and retained.
	Held int
	// Run makes granted containers run on their nodes, which report them in each heartbeat. Otherwise nodes do not
	// receive them.
	Run bool
}

// maxBehind limits an AM's late calls.
const maxBehind = 4096

// maxOutstanding is the number of unanswered waves after which an AM stops asking for more.
const maxOutstanding = 10

// AllocResult is the report about containers. The latency in the result is that of allocate calls.
type AllocResult struct {
	Nodes    int   `json:"nodes"`
	AMs      int   `json:"masters"`
	Wave     int   `json:"wave"`
	Held     int   `json:"held"`
	Granted  int64 `json:"granted"` // in the measured time
	Released int64 `json:"released"`
	// PerSecond is the number of containers granted and released per second.
	PerSecond float64 `json:"per_second"`
	// Grant is the time from a container's due ask to its receipt by the AM.
	Grant          Latency `json:"grant_ms"`
	CPUMicros      float64 `json:"server_cpu_us_each,omitempty"` // of the first watched process, for each container
	NodeHeartbeats Latency `json:"node_beat_ms"`
	HeartbeatsLost int64   `json:"node_beats_failed"`
}

// allocAM is one AM. Its calls are sequential, made by one owner.
type allocAM struct {
	attempt creel.AttemptID
	login   hrpc.Login
	am      yarnrpc.ApplicationMasterProtocolClient
	asked   []time.Time // due time of the ask for each awaited container
	told    int         // number of these that the ResourceManager has received
	held    []heldContainer

	// Of the call in flight, in reused memory.
	due      time.Time
	request  pb.AllocateRequestProto
	response int32
	ask      *pb.ResourceRequestProto
	answer   pb.AllocateResponseProto
	arena    pb.Arena
	released int // number of held containers that are released
}

type heldContainer struct {
	id    *pb.ContainerIdProto
	until time.Time
}

// Alloc runs the load.
func Alloc(ctx context.Context, o AllocOptions) (*Result, error) {
	switch {
	case o.AMs < 1 || o.AMs > 10_000:
		return nil, badOption("%d AMs: give 1 to 10000", o.AMs)
	case o.Wave < 1 || o.Wave > 100_000:
		return nil, badOption("waves of %d containers: give 1 to 100000", o.Wave)
	case o.Hold < 0 || o.Held < 0 || o.Held > 10_000_000:
		return nil, badOption(
			"a hold time of %v and %d containers held: neither may be negative, nor more than 10000000 be held",
			o.Hold,
			o.Held,
		)
	}
	o.NodePeriod = cmp.Or(o.NodePeriod, time.Second)
	if o.Size.IsZero() {
		o.Size = creel.NewResource(128, 1)
	}
	if o.Total.IsZero() {
		o.Total = creel.NewResource(1<<17, 1<<10)
	}
	o.Plan.InFlight = min(o.Plan.InFlight, o.AMs)
	if err := o.check(o.Client, o.Scheduler, o.Tracker); err != nil {
		return nil, err
	}
	a := &allocation{AllocOptions: o, grants: shard{h: newHistogram()}}
	clients, end := o.clients(o.Plan.Connections)
	defer end()
	var err error
	if a.fleet, err = newFleet(clients, o.Tracker, o.Nodes, o.First, nodeSize(o.Total)); err != nil {
		return nil, err
	}
	if err := a.fleet.register(ctx); err != nil {
		return nil, err
	}
	_, stop := a.heartbeats(ctx, clients, 0)
	defer func() { stop() }()
	stubs := o.stubs(clients, o.Client)
	err = a.launch(ctx, clients, stubs)
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		a.finish(late, stubs)
	}()
	if err != nil {
		return nil, err
	}
	if err := a.acquire(ctx); err != nil {
		return nil, err
	}
	a.grants.h.Reset()
	kind := a.piped()
	probe, err := clients[0].Pipe(ctx, kind.own[0]) // reports a connection error that would affect all AMs now
	if err != nil {
		return nil, err
	}
	probe.Close()
	stop() // heartbeats in this phase are not part of the load
	heartbeats, stopped := a.heartbeats(ctx, clients, o.Plan.Warmup)
	stop = stopped
	m := newMeter(o.PIDs)
	kind.start = time.Now()
	a.start, a.from = kind.start, kind.start.Add(o.Plan.Warmup)
	drivePipes := drivePiped
	if o.Plan.Rate > 0 {
		drivePipes = driveOpenPiped
	}
	err = drivePipes(ctx, o.Plan, m, clients, kind)
	r := m.result("alloc", o.Scheduler, o.Plan)
	stop()
	r.Containers = a.result(r, heartbeats.result("nodes", o.Tracker, Plan{}))
	return r, err
}

// heartbeats makes the nodes send heartbeats until stop is called. They are only the background of this load. So they
// share one connection, and all due within two milliseconds are sent together, which leaves the machine to the AMs.
func (a *allocation) heartbeats(
	ctx context.Context,
	clients []*hrpc.Client,
	warmup time.Duration,
) (m *meter, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	m = newMeter(nil)
	plan := Plan{
		Rate:        float64(a.Nodes) / a.NodePeriod.Seconds(),
		Duration:    MaxDuration,
		Warmup:      warmup,
		InFlight:    1,
		Connections: 1,
	}
	heartbeats := a.fleet.piped(tracker(a.Tracker))
	heartbeats.grain = 2 * time.Millisecond
	var work sync.WaitGroup
	work.Go(func() { _ = driveOpenPiped(ctx, plan, m, clients[:1], heartbeats) })
	return m, func() { cancel(); work.Wait() }
}

type allocation struct {
	AllocOptions
	fleet *fleet
	ams   []*allocAM
	start time.Time
	from  time.Time // later grants count

	granted, released atomic.Int64
	grants            shard
}

// launch submits and registers the AMs.
func (a *allocation) launch(ctx context.Context, clients []*hrpc.Client, stubs []clientStub) error {
	a.ams = make([]*allocAM, a.AMs)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range a.ams {
		a.ams[i] = &allocAM{}
		g.Go(func() error { return a.enter(ctx, a.ams[i], clients[i%len(clients)], stubs[i%len(stubs)]) })
	}
	return g.Wait()
}

// enter submits an unmanaged application, fetches its AMRM token the way
// Hadoop's launcher does, and registers.
func (a *allocation) enter(ctx context.Context, m *allocAM, c *hrpc.Client, rm clientStub) error {
	id, err := job{queue: a.Queue, unmanaged: true}.submit(ctx, rm)
	if err != nil {
		return fmt.Errorf("submit an AM: %w", err)
	}
	m.attempt = creel.AttemptID{Application: id, Attempt: 1}
	var amrm *pb.TokenProto
	for amrm == nil {
		answer, err := rm.GetApplicationReport(
			ctx,
			&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)},
		)
		if err != nil {
			return err
		}
		report := answer.GetApplicationReport()
		if s := creel.ApplicationState(report.GetYarnApplicationState()); s.Ended() {
			return fmt.Errorf("AM %s ended before it began: %s: %s", id, s, report.GetDiagnostics())
		}
		if amrm = report.GetAmRmToken(); amrm == nil {
			if err := pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	m.login = login(m.attempt.String(), token.FromProto(amrm))
	m.am = yarnrpc.NewApplicationMasterProtocolClient(c, a.Scheduler, m.login)
	for {
		_, err := m.am.RegisterApplicationMaster(
			ctx,
			&pb.RegisterApplicationMasterRequestProto{
				Host:        new("localhost"),
				RpcPort:     new(int32(-1)),
				TrackingUrl: new(""),
			},
		)
		if err == nil {
			break
		}
		if !again(err) {
			return fmt.Errorf("register AM %s: %w", m.attempt, err)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	m.ask = &pb.ResourceRequestProto{
		Priority:            pb.FromPriority(1),
		ResourceName:        new("*"),
		Capability:          pb.FromResource(a.Size),
		NumContainers:       new(int32(0)),
		RelaxLocality:       new(true),
		NodeLabelExpression: new(""),
		AllocationRequestId: new(int64(-1)),
		ExecutionTypeRequest: &pb.ExecutionTypeRequestProto{
			ExecutionType:        pb.ExecutionTypeProto_GUARANTEED.Enum(),
			EnforceExecutionType: new(false),
		},
	}
	m.request = pb.AllocateRequestProto{ResponseId: &m.response, Progress: new(float32(0.5))}
	return nil
}

// acquire asks for the containers that are held throughout.
func (a *allocation) acquire(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for i, m := range a.ams {
		want := a.Held / a.AMs
		if i < a.Held%a.AMs {
			want++
		}
		g.Go(func() error {
			for len(m.held) < want {
				before := len(m.held)
				a.prepare(m, time.Now(), min(1000, want-len(m.held)-len(m.asked)))
				answer, err := m.am.Allocate(ctx, &m.request)
				if err == nil {
					err = a.take(m, answer, MaxDuration)
				}
				if err != nil {
					return fmt.Errorf("AM %s: hold %d containers: %w", m.attempt, want, err)
				}
				if len(m.held) == before {
					if err := pause(ctx, 50*time.Millisecond); err != nil {
						return err
					}
				}
			}
			m.held = nil // they are never released, and do not count as asks
			return nil
		})
	}
	return g.Wait()
}

// piped returns the AMs' heartbeats, each AM's on a separate connection.
func (a *allocation) piped() pipedRequests {
	ams := a.ams
	if a.Plan.Rate == 0 {
		ams = ams[:a.Plan.InFlight]
	}
	kind := pipedRequests{
		method: "allocate", slots: len(ams), grain: time.Nanosecond, behind: maxBehind,
		request: func(b []byte, slot int, ticket int64) ([]byte, error) {
			m, due, wave := ams[slot], time.Now(), a.Wave
			if a.Plan.Rate > 0 {
				due = a.start.Add(a.Plan.due(ticket))
			}
			if len(m.asked) > (maxOutstanding-1)*a.Wave {
				wave = 0
			}
			a.prepare(m, due, wave)
			return appendVT(b, &m.request)
		},
		answer: func(_ context.Context, slot int, _ int64, body []byte) error {
			m := ams[slot]
			answer := &m.answer
			if a.Run { // nodes keep running their containers
				answer = new(pb.AllocateResponseProto)
				if err := answer.UnmarshalVT(body); err != nil {
					return err
				}
			} else if err := m.arena.Unmarshal(body, answer); err != nil {
				return err
			}
			return a.take(m, answer, a.Hold)
		},
	}
	for _, m := range ams {
		kind.own = append(
			kind.own,
			hrpc.Target{Address: a.Scheduler, Protocol: yarnrpc.ApplicationMasterProtocolName, Login: m.login},
		)
	}
	return kind
}

// prepare makes the call that asks for more containers and releases expired ones.
func (a *allocation) prepare(m *allocAM, due time.Time, more int) {
	m.due = due
	for range more {
		m.asked = append(m.asked, due)
	}
	m.request.Ask, m.request.Release = m.request.Ask[:0], m.request.Release[:0]
	if len(m.asked) != m.told {
		// An ask is absolute: it has the total number still wanted.
		*m.ask.NumContainers = int32(len(m.asked))
		m.request.Ask = append(m.request.Ask, m.ask)
	}
	now := time.Now()
	m.released = 0
	for m.released < len(m.held) && !m.held[m.released].until.After(now) {
		m.request.Release = append(m.request.Release, m.held[m.released].id)
		m.released++
	}
}

// take records the grants of a response.
func (a *allocation) take(m *allocAM, answer *pb.AllocateResponseProto, hold time.Duration) error {
	m.response = answer.GetResponseId()
	m.held = append(m.held[:0], m.held[m.released:]...)
	arrived := time.Now()
	granted := answer.GetAllocatedContainers()
	awaited := min(len(granted), len(m.asked))
	for i, c := range granted {
		until := arrived.Add(hold)
		if i >= awaited {
			until = arrived // more than requested: an ask and a grant crossed
		} else if !m.asked[i].Before(a.from) {
			a.grants.record(arrived.Sub(m.asked[i]))
		}
		m.held = append(m.held, heldContainer{id: pb.FromContainerID(pb.ToContainerID(c.GetId())), until: until})
		if a.Run {
			a.fleet.run(c)
		}
	}
	m.asked = append(m.asked[:0], m.asked[awaited:]...)
	m.told = len(m.asked)
	if t := answer.GetAmRmToken(); t != nil {
		return errors.New("the AMRM token rolled during the load: make it shorter than the rolling interval")
	}
	if !m.due.Before(a.from) && !a.from.IsZero() {
		a.granted.Add(int64(len(granted)))
		a.released.Add(int64(m.released))
	}
	return nil
}

// finish releases all containers.
func (a *allocation) finish(ctx context.Context, stubs []clientStub) {
	var g errgroup.Group
	g.SetLimit(32)
	for i, m := range a.ams {
		if m.attempt.IsZero() {
			continue
		}
		g.Go(func() error {
			if m.ask != nil { // it is registered
				if _, err := m.am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
					FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
					Diagnostics:            new(""),
					TrackingUrl:            new(""),
				}); err == nil {
					return nil
				}
			}
			return kill(ctx, stubs[i%len(stubs)], m.attempt.Application)
		})
	}
	_ = g.Wait()
}

func (a *allocation) result(r, heartbeats *Result) *AllocResult {
	out := &AllocResult{
		Nodes:    a.Nodes,
		AMs:      a.AMs,
		Wave:     a.Wave,
		Held:     a.Held,
		Granted:  a.granted.Load(),
		Released: a.released.Load(),
		PerSecond: round(
			float64(min(a.granted.Load(), a.released.Load())) / r.Seconds,
		),
		Grant:          latencyOf(a.grants.h),
		NodeHeartbeats: heartbeats.Latency,
		HeartbeatsLost: heartbeats.Failed - heartbeats.Failures["unanswered"] + heartbeats.Unsent,
	}
	if len(r.Servers) > 0 && out.Granted > 0 {
		out.CPUMicros = round(r.Servers[0].CPUSeconds * 1e6 / float64(out.Granted))
	}
	return out
}
