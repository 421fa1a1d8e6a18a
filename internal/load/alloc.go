// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// AllocOptions is a load of masters that ask for containers in waves, keep each
// for a time and release it, while nodes beat. The plan's rate is that of
// allocate calls, of all masters together: a master's beat is masters / rate.
type AllocOptions struct {
	Options
	Client, Scheduler, Tracker string // host:port of the doors

	Nodes      int
	First      int
	NodePeriod time.Duration  // between a node's beats; 1 s when zero
	Total      creel.Resource // of each node; room for many when zero

	Masters int // unmanaged, with AMRM tokens as the ResourceManager minted them
	Wave    int // containers asked for in each call
	Hold    time.Duration
	Size    creel.Resource // of a container; 128 MB and 1 core when zero
	Queue   string
	// Held containers are acquired before the load begins, and kept.
	Held int
	// Run has granted containers run on their nodes, which report them at each
	// beat. Without it nodes know nothing of them.
	Run bool
}

// maxOutstanding is how many waves a master may have asked for in vain before
// it stops asking for more.
const maxOutstanding = 10

// AllocResult is what is told of containers; the result's latency is that of
// allocate calls.
type AllocResult struct {
	Nodes    int   `json:"nodes"`
	Masters  int   `json:"masters"`
	Wave     int   `json:"wave"`
	Held     int   `json:"held"`
	Granted  int64 `json:"granted"` // in the measured time
	Released int64 `json:"released"`
	// PerSecond is how many were granted and given back a second.
	PerSecond float64 `json:"per_second"`
	// Grant is from when a container's ask was due to when its master had it.
	Grant     Latency `json:"grant_ms"`
	CPUMicros float64 `json:"server_cpu_us_each,omitempty"` // of the first watched process, for each container
	NodeBeats Latency `json:"node_beat_ms"`
	BeatsLost int64   `json:"node_beats_failed"`
}

// allocMaster is one master. Its lock is held over its calls, of which there is
// one at a time.
type allocMaster struct {
	mu       sync.Mutex
	attempt  creel.AttemptID
	am       yarnrpc.ApplicationMasterProtocolClient
	response int32
	asked    []time.Time // when each container still awaited was due to be asked for
	told     int         // how many of them the ResourceManager knows of
	held     []heldContainer
	ask      *pb.ResourceRequestProto
	grants   shard
}

type heldContainer struct {
	id    *pb.ContainerIdProto
	until time.Time
}

// Alloc allocates.
func Alloc(ctx context.Context, o AllocOptions) (*Result, error) {
	switch {
	case o.Masters < 1 || o.Masters > 10_000:
		return nil, fmt.Errorf("%d masters: give 1 to 10000", o.Masters)
	case o.Wave < 1 || o.Wave > 100_000:
		return nil, fmt.Errorf("waves of %d containers: give 1 to 100000", o.Wave)
	case o.Hold < 0 || o.Held < 0 || o.Held > 10_000_000:
		return nil, fmt.Errorf("a hold time of %v and %d containers held: neither may be negative, nor more than 10000000 be held", o.Hold, o.Held)
	}
	o.NodePeriod = cmp.Or(o.NodePeriod, time.Second)
	if o.Size.IsZero() {
		o.Size = creel.NewResource(128, 1)
	}
	if o.Total.IsZero() {
		o.Total = creel.NewResource(1<<17, 1<<10)
	}
	o.Plan.InFlight = min(o.Plan.InFlight, o.Masters)
	if err := o.check(o.Client, o.Scheduler, o.Tracker); err != nil {
		return nil, err
	}
	a := &allocation{AllocOptions: o}
	clients, end := o.clients(o.Plan.Connections)
	defer end()
	var err error
	if a.fleet, err = newFleet(clients, o.Tracker, o.Nodes, o.First, nodeSize(o.Total)); err != nil {
		return nil, err
	}
	if err := a.fleet.register(ctx); err != nil {
		return nil, err
	}
	_, stop := a.beat(ctx, clients, 0)
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
	stop() // the beats meanwhile are not those of the load
	beats, stopped := a.beat(ctx, clients, o.Plan.Warmup)
	stop = stopped
	m := newMeter(o.PIDs)
	a.from = time.Now().Add(o.Plan.Warmup)
	err = drive(ctx, o.Plan, m, a.call)
	r := m.result("alloc", o.Scheduler, o.Plan)
	stop()
	r.Containers = a.result(r, beats.result("nodes", o.Tracker, Plan{}))
	return r, err
}

// beat has the nodes beat until stop is called. They are the background of this
// load: on one connection, and all that are due within two milliseconds
// together, they leave the machine to the masters.
func (a *allocation) beat(ctx context.Context, clients []*hrpc.Client, warmup time.Duration) (m *meter, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	m = newMeter(nil)
	plan := Plan{Rate: float64(a.Nodes) / a.NodePeriod.Seconds(), Duration: MaxDuration, Warmup: warmup, InFlight: 1, Connections: 1}
	beats := a.fleet.piped(tracker(a.Tracker))
	beats.grain = 2 * time.Millisecond
	var work sync.WaitGroup
	work.Go(func() { _ = driveOpenPiped(ctx, plan, m, clients[:1], beats) })
	return m, func() { cancel(); work.Wait() }
}

type allocation struct {
	AllocOptions
	fleet   *fleet
	masters []*allocMaster
	from    time.Time // what is granted later counts

	mu                sync.Mutex
	granted, released int64
}

// launch submits and registers the masters.
func (a *allocation) launch(ctx context.Context, clients []*hrpc.Client, stubs []clientStub) error {
	a.masters = make([]*allocMaster, a.Masters)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range a.masters {
		a.masters[i] = &allocMaster{grants: shard{h: newHistogram()}}
		g.Go(func() error { return a.enter(ctx, a.masters[i], clients[i%len(clients)], stubs[i%len(stubs)]) })
	}
	return g.Wait()
}

// enter submits an unmanaged application, fetches its AMRM token the way
// Hadoop's launcher does, and registers.
func (a *allocation) enter(ctx context.Context, m *allocMaster, c *hrpc.Client, rm clientStub) error {
	id, err := job{queue: a.Queue, unmanaged: true}.submit(ctx, rm)
	if err != nil {
		return fmt.Errorf("submit a master: %w", err)
	}
	m.attempt = creel.AttemptID{Application: id, Attempt: 1}
	var amrm *pb.TokenProto
	for amrm == nil {
		answer, err := rm.GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)})
		if err != nil {
			return err
		}
		report := answer.GetApplicationReport()
		if s := creel.ApplicationState(report.GetYarnApplicationState()); s.Ended() {
			return fmt.Errorf("master %s ended before it began: %s: %s", id, s, report.GetDiagnostics())
		}
		if amrm = report.GetAmRmToken(); amrm == nil {
			if err := pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	m.am = yarnrpc.NewApplicationMasterProtocolClient(c, a.Scheduler, login(m.attempt.String(), token.FromProto(amrm)))
	for {
		_, err := m.am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{Host: new("localhost"), RpcPort: new(int32(-1)), TrackingUrl: new("")})
		if err == nil {
			break
		}
		if !again(err) {
			return fmt.Errorf("register master %s: %w", m.attempt, err)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	m.ask = &pb.ResourceRequestProto{Priority: pb.FromPriority(1), ResourceName: new("*"), Capability: pb.FromResource(a.Size), NumContainers: new(int32(0)),
		RelaxLocality: new(true), NodeLabelExpression: new(""), AllocationRequestId: new(int64(-1)),
		ExecutionTypeRequest: &pb.ExecutionTypeRequestProto{ExecutionType: pb.ExecutionTypeProto_GUARANTEED.Enum(), EnforceExecutionType: new(false)}}
	return nil
}

// acquire grows to the containers that are held throughout.
func (a *allocation) acquire(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for i, m := range a.masters {
		want := a.Held / a.Masters
		if i < a.Held%a.Masters {
			want++
		}
		g.Go(func() error {
			m.mu.Lock()
			defer m.mu.Unlock()
			for len(m.held) < want {
				now := time.Now()
				before := len(m.held)
				if err := a.exchange(ctx, m, now, min(1000, want-len(m.held)-len(m.asked)), MaxDuration); err != nil {
					return fmt.Errorf("master %s: hold %d containers: %w", m.attempt, want, err)
				}
				if len(m.held) == before {
					if err := pause(ctx, 50*time.Millisecond); err != nil {
						return err
					}
				}
			}
			m.held = nil // they are never given back, and stand in nobody's way
			m.grants = shard{h: newHistogram()}
			return nil
		})
	}
	return g.Wait()
}

// call is one beat of a master.
func (a *allocation) call(ctx context.Context, w int, ticket int64, due time.Time) error {
	m := a.masters[w%len(a.masters)]
	if a.Plan.Rate > 0 {
		m = a.masters[ticket%int64(len(a.masters))]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	wave := a.Wave
	if len(m.asked) > (maxOutstanding-1)*a.Wave {
		wave = 0
	}
	return a.exchange(ctx, m, due, wave, a.Hold)
}

// exchange asks for more containers, gives back those whose time is over and
// takes what is granted. The caller holds the master's lock.
func (a *allocation) exchange(ctx context.Context, m *allocMaster, due time.Time, more int, hold time.Duration) error {
	req := &pb.AllocateRequestProto{ResponseId: &m.response, Progress: new(float32(0.5))}
	for range more {
		m.asked = append(m.asked, due)
	}
	if len(m.asked) != m.told {
		// An ask is absolute: it says how many are still wanted in all.
		m.ask.NumContainers = new(int32(len(m.asked)))
		req.Ask = []*pb.ResourceRequestProto{m.ask}
	}
	now := time.Now()
	released := 0
	for released < len(m.held) && !m.held[released].until.After(now) {
		req.Release = append(req.Release, m.held[released].id)
		released++
	}
	answer, err := m.am.Allocate(ctx, req)
	if err != nil {
		return err
	}
	m.response = answer.GetResponseId()
	m.held = m.held[released:]
	arrived := time.Now()
	granted := answer.GetAllocatedContainers()
	for _, c := range granted {
		until := arrived.Add(hold)
		if len(m.asked) > 0 {
			if !m.asked[0].Before(a.from) {
				m.grants.record(arrived.Sub(m.asked[0]))
			}
			m.asked = m.asked[1:]
		} else {
			until = arrived // more than we asked for: an ask and a grant crossed
		}
		m.held = append(m.held, heldContainer{id: c.GetId(), until: until})
		if a.Run {
			a.fleet.run(c)
		}
	}
	m.told = len(m.asked)
	if t := answer.GetAmRmToken(); t != nil {
		return errors.New("the AMRM token rolled within the load: make it shorter than the rolling interval")
	}
	if !due.Before(a.from) && !a.from.IsZero() {
		a.mu.Lock()
		a.granted += int64(len(granted))
		a.released += int64(released)
		a.mu.Unlock()
	}
	return nil
}

// finish gives everything back.
func (a *allocation) finish(ctx context.Context, stubs []clientStub) {
	var g errgroup.Group
	g.SetLimit(32)
	for i, m := range a.masters {
		if m.attempt.IsZero() {
			continue
		}
		g.Go(func() error {
			if m.ask != nil { // it registered
				if _, err := m.am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
					FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(), Diagnostics: new(""), TrackingUrl: new("")}); err == nil {
					return nil
				}
			}
			return kill(ctx, stubs[i%len(stubs)], m.attempt.Application)
		})
	}
	_ = g.Wait()
}

func (a *allocation) result(r, beats *Result) *AllocResult {
	h := newHistogram()
	for _, m := range a.masters {
		h.Merge(m.grants.h)
	}
	out := &AllocResult{Nodes: a.Nodes, Masters: a.Masters, Wave: a.Wave, Held: a.Held, Granted: a.granted, Released: a.released,
		PerSecond: round(float64(min(a.granted, a.released)) / r.Seconds), Grant: latencyOf(h), NodeBeats: beats.Latency, BeatsLost: beats.Failed - beats.Failures["unanswered"] + beats.Unsent}
	if len(r.Servers) > 0 && out.Granted > 0 {
		out.CPUMicros = round(r.Servers[0].CPUSeconds * 1e6 / float64(out.Granted))
	}
	return out
}
