// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Job decides the actions of an AM: a [workload.AM], or the distributed shell's.
type Job interface {
	// Registered is the first event, and the event after the ResourceManager lost the AM.
	Registered() workload.Steps
	// Allocated processes the answer to one allocate call.
	Allocated(grants []workload.Grant, ended []workload.Completion) workload.Steps
	// StartFailed reports a container that its node did not start.
	StartFailed(c creel.ContainerID) workload.Steps
	// Outstanding returns the numbers of containers that the AM still wants and has.
	Outstanding() (wants, holds int)
}

// AM runs a Job over real protocols: it registers, asks, starts its tasks' containers on their nodes, and finishes.
type AM struct {
	Client    *hrpc.Client // shared by all AMs of a process
	Scheduler string       // address of ApplicationMasterProtocol
	Attempt   creel.AttemptID
	Token     token.Token // AMRM token
	Play      Job
	Heartbeat time.Duration // between allocate calls without changes; 0: 100 ms
	// Launch returns the launch context of a task's container. If it is nil, simulated nodes wait for the task's
	// duration.
	Launch func(workload.Start) *yarnpb.ContainerLaunchContextProto
	// Share returns the finished part of the job, from 0 to 1; nil means one half.
	Share func() float32
	// NotStarted receives the reason why a container did not start, before the Job is notified; nil for none.
	NotStarted func(c creel.ContainerID, reason string)
	// Opportunistic is the fraction of the containers of each ask, from 0 to 1, that may be opportunistic.
	Opportunistic float64
	// Observe is called at each grant; nil: not called.
	Observe func(Observation)

	wants, holds atomic.Int64
	last         atomic.Pointer[string]
}

// Progress returns the number of containers that the AM still wants, the number of its containers that have not
// ended, and its last error, "" for none.
func (m *AM) Progress() (wants, holds int64, trouble string) {
	if t := m.last.Load(); t != nil {
		trouble = *t
	}
	return m.wants.Load(), m.holds.Load(), trouble
}

// Observation is one granted container, with the time since the AM first asked for one more container of its
// priority.
type Observation struct {
	Container creel.ContainerID
	Node      creel.NodeID
	Waited    time.Duration
}

// Run runs the application to its end. It returns nil if the application finished as its job decided, successfully or
// not.
func (m *AM) Run(ctx context.Context) error {
	r := &amRun{
		AM:       m,
		am:       yarnrpc.NewApplicationMasterProtocolClient(m.Client, m.Scheduler, login(m.Attempt.String(), m.Token)),
		nodes:    map[creel.NodeID]token.Token{},
		held:     map[creel.ContainerID]*yarnpb.ContainerProto{},
		asked:    map[int32][]time.Time{},
		slots:    make(chan struct{}, launchers),
		failures: make(chan startFailure),
	}
	r.heartbeat = cmp.Or(m.Heartbeat, 100*time.Millisecond)
	steps, err := r.register(ctx)
	if err != nil {
		return err
	}
	defer r.starting.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		wants, holds := r.Play.Outstanding()
		r.wants.Store(int64(wants))
		r.holds.Store(int64(holds))
		if steps.Finish {
			return r.finish(ctx, steps)
		}
		steps, err = r.allocate(ctx, steps)
		if errors.Is(err, creel.ErrInvalidRequest) || errors.Is(err, creel.ErrInvalidResource) {
			// The ask was rejected for good: the application has failed, and its diagnostics have the reason.
			return r.finish(ctx, workload.Steps{Failed: true, Diagnostics: "the ask was refused: " + plain(err)})
		}
		if err != nil {
			return err
		}
		if len(steps.Asks) > 0 || len(steps.Releases) > 0 || steps.Finish {
			continue // something changed: send it now
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-r.failures:
			steps = r.startFailed(c)
		case <-time.After(r.heartbeat):
		}
	}
}

// launchers limits the nodes that an AM calls at the same time, like the pool of MapReduce's container launcher,
// which starts with 10.
const launchers = 10

func login(user string, t token.Token) hrpc.Login {
	return hrpc.Login{
		User:       user,
		Credential: &hrpc.Credential{Identifier: t.Identifier, Password: t.Password, Kind: t.Kind, Service: t.Service},
	}
}

type amRun struct {
	*AM
	am         yarnrpc.ApplicationMasterProtocolClient
	heartbeat  time.Duration
	responseID int32
	nodes      map[creel.NodeID]token.Token
	held       map[creel.ContainerID]*yarnpb.ContainerProto
	asked      map[int32][]time.Time // per priority, time of the ask for each wanted container

	starting sync.WaitGroup // calls to nodes in flight
	slots    chan struct{}  // one for each of these calls
	failures chan startFailure
}

// startFailure is a container that its node did not start.
type startFailure struct {
	container creel.ContainerID
	reason    string
}

// register retries while the attempt does not exist yet or the ResourceManager is unavailable.
func (r *amRun) register(ctx context.Context) (workload.Steps, error) {
	req := &yarnpb.RegisterApplicationMasterRequestProto{
		Host:        proto.String("localhost"),
		RpcPort:     proto.Int32(-1),
		TrackingUrl: proto.String(""),
	}
	for {
		_, err := r.am.RegisterApplicationMaster(ctx, req)
		if err == nil {
			r.responseID = 0
			return r.Play.Registered(), nil
		}
		if !r.again(err) {
			return workload.Steps{}, fmt.Errorf("register %s: %w", r.Attempt, err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return workload.Steps{}, err
		}
	}
}

// again reports whether the same call may be retried after an error.
func again(err error) bool {
	var transport *hrpc.TransportError
	return errors.As(err, &transport) || errors.Is(err, creel.ErrBusy) || errors.Is(err, creel.ErrUnavailable) ||
		errors.Is(err, creel.ErrStandby)
}

// again also records the error for Progress.
func (m *AM) again(err error) bool {
	text := err.Error()
	m.last.Store(&text)
	return again(err)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (r *amRun) share() float32 {
	if r.Share == nil {
		return 0.5
	}
	return r.Share()
}

// asksOf writes an ask of the Job. If a part of it is opportunistic, both parts are sent, so that a later ask replaces
// both. An ask for a host or a rack is guaranteed.
func asksOf(a workload.Ask, opportunistic float64) []*yarnpb.ResourceRequestProto {
	ask := func(count int32, kind yarnpb.ExecutionTypeProto) *yarnpb.ResourceRequestProto {
		return &yarnpb.ResourceRequestProto{
			Priority:            yarnpb.FromPriority(a.Priority),
			ResourceName:        proto.String(a.Name),
			Capability:          yarnpb.FromResource(a.Size),
			NumContainers:       proto.Int32(count),
			RelaxLocality:       proto.Bool(true),
			AllocationRequestId: proto.Int64(-1),
			ExecutionTypeRequest: &yarnpb.ExecutionTypeRequestProto{
				ExecutionType: kind.Enum(), EnforceExecutionType: proto.Bool(false),
			},
		}
	}
	if opportunistic <= 0 || a.Name != "*" {
		return []*yarnpb.ResourceRequestProto{ask(a.Count, yarnpb.ExecutionTypeProto_GUARANTEED)}
	}
	part := int32(math.Round(opportunistic * float64(a.Count)))
	return []*yarnpb.ResourceRequestProto{
		ask(a.Count-part, yarnpb.ExecutionTypeProto_GUARANTEED), ask(part, yarnpb.ExecutionTypeProto_OPPORTUNISTIC),
	}
}

// allocate makes one call and processes its answer.
func (r *amRun) allocate(ctx context.Context, s workload.Steps) (workload.Steps, error) {
	req := &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(r.responseID), Progress: proto.Float32(r.share())}
	now := time.Now()
	for _, a := range s.Asks {
		req.Ask = append(req.Ask, asksOf(a, r.Opportunistic)...)
		times := r.asked[a.Priority]
		for len(times) < int(a.Count) {
			times = append(times, now)
		}
		r.asked[a.Priority] = times[:a.Count]
	}
	for _, c := range s.Releases {
		req.Release = append(req.Release, yarnpb.FromContainerID(c))
		delete(r.held, c)
	}
	var answer *yarnpb.AllocateResponseProto
	for {
		var err error
		answer, err = r.am.Allocate(ctx, req)
		if err == nil {
			break
		}
		switch {
		case errors.Is(err, creel.ErrNotRegistered):
			// The ResourceManager restarted: register and repeat all asks.
			return r.register(ctx)
		case !r.again(err):
			return workload.Steps{}, fmt.Errorf("allocate %s: %w", r.Attempt, err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return workload.Steps{}, err
		}
	}
	r.responseID = answer.GetResponseId()
	if t := answer.GetAmRmToken(); t != nil {
		r.Token = token.FromProto(t)
		r.am = yarnrpc.NewApplicationMasterProtocolClient(r.Client, r.Scheduler, login(r.Attempt.String(), r.Token))
	}
	for _, t := range answer.GetNmTokens() {
		r.nodes[yarnpb.ToNodeID(t.GetNodeId())] = token.FromProto(t.GetToken())
	}
	var ended []workload.Completion
	for _, c := range answer.GetCompletedContainerStatuses() {
		id := yarnpb.ToContainerID(c.GetContainerId())
		delete(r.held, id)
		ended = append(ended, workload.Completion{
			Container: id, Exit: c.GetExitStatus(), Diagnostics: c.GetDiagnostics(),
		})
	}
	arrived := time.Now()
	grants := make([]workload.Grant, 0, len(answer.GetAllocatedContainers()))
	for _, c := range answer.GetAllocatedContainers() {
		g := workload.Grant{
			Container: yarnpb.ToContainerID(c.GetId()),
			Node:      yarnpb.ToNodeID(c.GetNodeId()),
			Priority:  yarnpb.ToPriority(c.GetPriority()),
		}
		r.held[g.Container] = c
		grants = append(grants, g)
		if times := r.asked[g.Priority]; len(times) > 0 {
			if r.Observe != nil {
				r.Observe(Observation{Container: g.Container, Node: g.Node, Waited: arrived.Sub(times[0])})
			}
			r.asked[g.Priority] = times[1:]
		}
	}
	next := r.Play.Allocated(grants, ended)
	r.start(ctx, next.Starts)
	next.Starts = nil
	return next, nil
}

// start starts tasks, with one call for each node, while the AM continues. It waits only if the limit of calls in
// flight is reached.
func (r *amRun) start(ctx context.Context, starts []workload.Start) {
	slices.SortStableFunc(starts, func(a, b workload.Start) int { return a.Grant.Node.Compare(b.Grant.Node) })
	for len(starts) > 0 {
		node := starts[0].Grant.Node
		n := 1
		for n < len(starts) && starts[n].Grant.Node == node {
			n++
		}
		call := r.startCall(node, starts[:n])
		starts = starts[n:]
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r.starting.Go(func() {
			failed := call(ctx)
			<-r.slots
			for _, c := range failed {
				select {
				case r.failures <- c:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// startFailed handles a container that did not start, and further ones in the queue.
func (r *amRun) startFailed(c startFailure) workload.Steps {
	s := r.tell(c)
	for {
		select {
		case c := <-r.failures:
			next := r.tell(c)
			// Of several asks at one priority, the last one applies.
			s.Asks = append(slices.DeleteFunc(s.Asks, func(a workload.Ask) bool {
				return slices.ContainsFunc(next.Asks, func(b workload.Ask) bool { return a.Priority == b.Priority })
			}), next.Asks...)
			s.Releases = append(s.Releases, next.Releases...)
			s.Finish, s.Failed = s.Finish || next.Finish, s.Failed || next.Failed
			s.Diagnostics = cmp.Or(next.Diagnostics, s.Diagnostics)
		default:
			return s
		}
	}
}

func (r *amRun) tell(c startFailure) workload.Steps {
	if r.NotStarted != nil {
		r.NotStarted(c.container, c.reason)
	}
	return r.Play.StartFailed(c.container)
}

// plain returns a server's error message without the class names before it.
func plain(err error) string {
	text := err.Error()
	var remote *hrpc.RemoteError
	if errors.As(err, &remote) {
		text = remote.Message
	}
	for {
		class, rest, ok := strings.Cut(text, ": ")
		if !ok || strings.ContainsAny(class, " \n") || !strings.Contains(class, ".") {
			return text
		}
		text = rest
	}
}

// startCall prepares the call that starts tasks on one node. The call returns the tasks that did not start.
func (r *amRun) startCall(node creel.NodeID, batch []workload.Start) func(context.Context) []startFailure {
	req := &yarnpb.StartContainersRequestProto{}
	for _, s := range batch {
		launch := r.Launch
		if launch == nil {
			launch = timed
		}
		req.StartContainerRequest = append(req.StartContainerRequest, &yarnpb.StartContainerRequestProto{
			ContainerToken:         r.held[s.Grant.Container].GetContainerToken(),
			ContainerLaunchContext: launch(s),
		})
	}
	client := yarnrpc.NewContainerManagementProtocolClient(
		r.Client,
		node.String(),
		login(r.Attempt.String(), r.nodes[node]),
	)
	return func(ctx context.Context) (failed []startFailure) {
		answer, err := client.StartContainers(ctx, req)
		if err != nil {
			text := err.Error()
			r.last.Store(&text)
			for _, s := range batch {
				failed = append(failed, startFailure{s.Grant.Container, text})
			}
			return failed
		}
		for _, f := range answer.GetFailedRequests() {
			reason := cmp.Or(f.GetException().GetMessage(), "the node reported no reason")
			failed = append(failed, startFailure{yarnpb.ToContainerID(f.GetContainerId()), reason})
		}
		return failed
	}
}

// timed makes a simulated node wait for a task's duration.
func timed(s workload.Start) *yarnpb.ContainerLaunchContextProto {
	return &yarnpb.ContainerLaunchContextProto{
		Command: []string{"sleep " + strconv.FormatFloat(s.Duration.Seconds(), 'f', 3, 64)},
		Environment: []*yarnpb.StringStringMapProto{
			{
				Key:   proto.String("CREEL_SIM_MS"),
				Value: proto.String(strconv.FormatInt(s.Duration.Milliseconds(), 10)),
			},
			{Key: proto.String("CREEL_SIM_EXIT"), Value: proto.String(strconv.Itoa(int(s.Exit)))},
		},
	}
}

// finish releases the remaining containers and repeats finishApplicationMaster until the ResourceManager has the
// outcome on disk.
func (r *amRun) finish(ctx context.Context, s workload.Steps) error {
	if len(s.Asks) > 0 || len(s.Releases) > 0 {
		s.Finish = false
		if _, err := r.allocate(ctx, s); err != nil && !errors.Is(err, creel.ErrAttemptNotFound) {
			return err
		}
	}
	status := yarnpb.FinalApplicationStatusProto_APP_SUCCEEDED
	diagnostics := s.Diagnostics
	if s.Failed {
		status = yarnpb.FinalApplicationStatusProto_APP_FAILED
		diagnostics = cmp.Or(diagnostics, "a task failed too often")
	}
	req := &yarnpb.FinishApplicationMasterRequestProto{
		FinalApplicationStatus: status.Enum(),
		Diagnostics:            proto.String(diagnostics),
		TrackingUrl:            proto.String(""),
	}
	for tries := 0; ; tries++ {
		answer, err := r.am.FinishApplicationMaster(ctx, req)
		switch {
		case err == nil && answer.GetIsUnregistered():
			return nil
		case errors.Is(err, creel.ErrNotRegistered):
			if _, err := r.register(ctx); err != nil {
				return err
			}
			continue
		case errors.Is(err, creel.ErrAttemptNotFound),
			errors.Is(err, creel.ErrApplicationNotFound),
			tries > 0 && errors.Is(err, creel.ErrInvalidToken):
			return nil // an earlier call, whose answer was lost, finished it and ended its token
		case err != nil && !r.again(err):
			return fmt.Errorf("finish %s: %w", r.Attempt, err)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
