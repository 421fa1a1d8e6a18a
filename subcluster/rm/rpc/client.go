// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// clientDoor is ApplicationClientProtocol. What it does not name here is not
// enabled and answered so: reservations, and the like.
type clientDoor struct {
	yarnrpc.UnimplementedApplicationClientProtocol
	d *Daemon
}

func (d *Daemon) clientService() hrpc.Service {
	return yarnrpc.Inline(
		yarnrpc.ApplicationClientProtocolService(&clientDoor{d: d}),
		"getNewApplication",
		"getApplicationReport",
		"submitApplication",
		"forceKillApplication",
		"getClusterMetrics",
		"getApplications",
		"getClusterNodes",
		"getApplicationAttemptReport",
		"getApplicationAttempts",
		"getContainerReport",
		"getContainers",
	)
}

func contextOf(v any) *pb.ApplicationSubmissionContextProto {
	c, _ := v.(*pb.ApplicationSubmissionContextProto)
	return c
}

// NewApplicationID takes an application id that nobody had before.
func (d *Daemon) NewApplicationID() creel.ApplicationID { return d.newApplicationIDs(1) }

// newApplicationIDs takes n ids in a row and gives the first.
func (d *Daemon) newApplicationIDs(n int) creel.ApplicationID {
	return creel.ApplicationID{ClusterTimestamp: d.start.UnixMilli(), ID: d.nextApp.Add(int32(n)) - int32(n) + 1}
}

// GetNewApplication gives one id, or to a router of ours a block of them.
func (c *clientDoor) GetNewApplication(
	_ context.Context,
	req *pb.GetNewApplicationRequestProto,
) (*pb.GetNewApplicationResponseProto, error) {
	n := yarnrpc.BlockWanted(req)
	id := c.d.newApplicationIDs(n)
	if id.ID <= 0 || id.ID > math.MaxInt32-int32(n) {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "all application ids of this ResourceManager's life are used",
			Try:  "restart it",
		}
	}
	answer := &pb.GetNewApplicationResponseProto{
		ApplicationId:     pb.FromApplicationID(id),
		MaximumCapability: pb.FromResource(c.d.cfg.Machine.MaxAllocation),
	}
	yarnrpc.SetBlock(answer, n)
	return answer, nil
}

// SubmitApplication submits for a user of this process's other doors. It
// returns when the submission is durable; a known id changes nothing. claim is
// the number under which a router forwarded it, 0 if none did.
func (d *Daemon) SubmitApplication(
	ctx context.Context,
	who Caller,
	c *pb.ApplicationSubmissionContextProto,
	claim int64,
) error {
	_, err := await(ctx, d, who, d.submit(who, c, claim))
	return err
}

func (c *clientDoor) SubmitApplication(
	ctx context.Context,
	req *pb.SubmitApplicationRequestProto,
) (*pb.SubmitApplicationResponseProto, error) {
	return later(ctx, c.d, c.d.submit(callerOf(ctx), req.GetApplicationSubmissionContext(), yarnrpc.ClaimOf(req)))
}

func (d *Daemon) submit(
	who Caller,
	c *pb.ApplicationSubmissionContextProto,
	claim int64,
) op[*pb.SubmitApplicationResponseProto] {
	type R = *pb.SubmitApplicationResponseProto
	o := op[R]{durable: true, name: "submitApplication", target: pb.ToApplicationID(c.GetApplicationId()).String()}
	s, err := submission(c, who.User, d.access.groupsOf(who.User))
	if err == nil && c.SizeVT() > maxContextBytes {
		err = invalid("the submission of %s has %d bytes, the limit is %d", s.ID, c.SizeVT(), maxContextBytes)
	}
	s.Claim = claim
	if tokens := c.GetAmContainerSpec().GetTokens(); err == nil && len(tokens) > 0 {
		_, err = token.ParseCredentials(tokens)
	}
	o.run = func(m *rm.Machine, now time.Time) func() (R, error) {
		if err != nil {
			return failed[R](err)
		}
		if a, known := m.App(s.ID); known && a.User == s.User {
			return done(&pb.SubmitApplicationResponseProto{})
		} else if known {
			return failed[R](m.Submit(now, &s)) // says whose it is
		}
		d.secrets.addApp(s.ID, s.User, c)
		if err := m.Submit(now, &s); err != nil {
			d.secrets.forgetApp(s.ID)
			return failed[R](err)
		}
		d.metrics.Submissions.Add(1)
		return done(&pb.SubmitApplicationResponseProto{})
	}
	return o
}

func noSuchApp(id creel.ApplicationID) error {
	return &creel.Error{
		Kind: creel.ErrApplicationNotFound,
		What: fmt.Sprintf(
			"Application with id '%s' doesn't exist in RM. Please check that the job submission was successful.",
			id,
		),
	}
}

// may tells what a caller may do with an application; it runs in the owner's
// goroutine, where queues can be asked.
func (d *Daemon) may(m *rm.Machine, who Caller, a *rm.AppView, kind pb.ApplicationAccessTypeProto) bool {
	return d.access.appAccess(who.User, a.User, kind, contextOf(a.Context), func(user string, groups []string) bool {
		return m.MayAdminister(string(a.Queue), user, groups)
	})
}

const (
	viewApp   = pb.ApplicationAccessTypeProto_APPACCESS_VIEW_APP
	modifyApp = pb.ApplicationAccessTypeProto_APPACCESS_MODIFY_APP
)

func cannot(who Caller, what string, id fmt.Stringer) error {
	return denied("User %s cannot perform operation %s on %s", who.User, what, id)
}

// modifiable finds an application that the caller may change.
func (d *Daemon) modifiable(m *rm.Machine, who Caller, id creel.ApplicationID) (rm.AppView, error) {
	a, ok := m.App(id)
	switch {
	case !ok:
		return a, noSuchApp(id)
	case !d.may(m, who, &a, modifyApp):
		return a, cannot(who, "MODIFY_APP", id)
	}
	return a, nil
}

func (c *clientDoor) GetApplicationReport(
	ctx context.Context,
	req *pb.GetApplicationReportRequestProto,
) (*pb.GetApplicationReportResponseProto, error) {
	type R = *pb.GetApplicationReportResponseProto
	d, id, who := c.d, pb.ToApplicationID(req.GetApplicationId()), callerOf(ctx)
	if req.GetApplicationId() == nil {
		return nil, &creel.Error{Kind: errNoApplicationID, What: "Invalid application id: null"}
	}
	if claim := yarnrpc.DisownWanted(req); claim > 0 {
		return later(ctx, d, d.disown(who, id, claim))
	}
	key := reportKey{id, who.User}
	if body := d.reports.get(key, d.Moves(), time.Now()); body != nil {
		return encoded(&pb.GetApplicationReportResponseProto{}, body), nil
	}
	return later(ctx, d, op[R]{run: func(m *rm.Machine, now time.Time) func() (R, error) {
		moves := d.Moves()
		a, ok := m.App(id)
		if !ok {
			return failed[R](noSuchApp(id))
		}
		viewable := d.may(m, who, &a, viewApp)
		return func() (R, error) {
			r := d.Report(&a, now, viewable)
			if a.Token && viewable && who.User == a.User {
				r.AmRmToken = d.secrets.amrmToken(a.Attempt).Proto()
			}
			out := &pb.GetApplicationReportResponseProto{ApplicationReport: r}
			if r.AmRmToken != nil || d.Moves() != moves { // a secret, or old already
				return out, nil
			}
			body, err := out.MarshalVT()
			if err != nil {
				return out, nil
			}
			d.reports.put(key, encodedReport{moves: moves, made: now, body: body})
			return encoded(&pb.GetApplicationReportResponseProto{}, body), nil
		}
	}})
}

// disown answers a router that wants to leave this home: with the disowned mark
// once it is durable, or with an empty report if the application is here.
func (d *Daemon) disown(
	who Caller,
	id creel.ApplicationID,
	claim int64,
) op[*pb.GetApplicationReportResponseProto] {
	type R = *pb.GetApplicationReportResponseProto
	o := op[R]{durable: true, name: "disownApplication", target: id.String()}
	o.run = func(m *rm.Machine, now time.Time) func() (R, error) {
		if !d.access.isRouter(who.User) {
			return failed[R](&creel.Error{
				Kind: creel.ErrNotPermitted,
				What: who.User + " may not have " + id.String() + " disowned",
				Why:  "only a router may: a user that acts for others, or an administrator",
				Try:  "set hadoop.proxyuser.*.hosts and .users for the router's user, or add it to yarn.admin.acl",
			})
		}
		known, err := m.Disown(now, id, claim)
		switch {
		case err != nil:
			return failed[R](err)
		case known:
			return done(&pb.GetApplicationReportResponseProto{
				ApplicationReport: &pb.ApplicationReportProto{ApplicationId: pb.FromApplicationID(id)},
			})
		}
		return done(yarnrpc.DisownedAnswer(claim))
	}
	return o
}

// KillApplication asks for an application's end; done tells that it is final
// and durable. Ask again until it is.
func (d *Daemon) KillApplication(
	ctx context.Context,
	who Caller,
	id creel.ApplicationID,
	diagnostics string,
) (done bool, err error) {
	r, err := await(ctx, d, who, d.kill(who, id, diagnostics))
	return r.GetIsKillCompleted(), err
}

func (c *clientDoor) ForceKillApplication(
	ctx context.Context,
	req *pb.KillApplicationRequestProto,
) (*pb.KillApplicationResponseProto, error) {
	return later(ctx, c.d, c.d.kill(callerOf(ctx), pb.ToApplicationID(req.GetApplicationId()), req.GetDiagnostics()))
}

func (d *Daemon) kill(who Caller, id creel.ApplicationID, diagnostics string) op[*pb.KillApplicationResponseProto] {
	type R = *pb.KillApplicationResponseProto
	return op[R]{
		name:   "forceKillApplication",
		target: id.String(),
		run: func(m *rm.Machine, now time.Time) func() (R, error) {
			if _, err := d.modifiable(m, who, id); err != nil {
				return failed[R](err)
			}
			d.metrics.Kills.Add(1)
			text := fmt.Sprintf("Application %s was killed by user %s at %s", id, who.User, who.Remote.Addr())
			if diagnostics != "" {
				text += " with diagnostic message: " + diagnostics
			}
			completed, err := m.Kill(now, id, text)
			if err != nil {
				return failed[R](err)
			}
			return done(&pb.KillApplicationResponseProto{IsKillCompleted: &completed})
		},
	}
}

func (c *clientDoor) GetClusterMetrics(
	ctx context.Context,
	_ *pb.GetClusterMetricsRequestProto,
) (*pb.GetClusterMetricsResponseProto, error) {
	type R = *pb.GetClusterMetricsResponseProto
	return later(ctx, c.d, op[R]{run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		v := m.Cluster()
		return func() (R, error) {
			n := func(states ...creel.NodeState) *int32 {
				total := 0
				for _, s := range states {
					total += v.Nodes[s]
				}
				return new(int32(total))
			}
			return &pb.GetClusterMetricsResponseProto{ClusterMetrics: &pb.YarnClusterMetricsProto{
				NumNodeManagers:       n(creel.NodeRunning, creel.NodeDecommissioning),
				NumDecommissionedNms:  n(creel.NodeDecommissioned),
				NumActiveNms:          n(creel.NodeRunning),
				NumLostNms:            n(creel.NodeLost),
				NumUnhealthyNms:       n(creel.NodeUnhealthy),
				NumRebootedNms:        n(creel.NodeRebooted),
				NumDecommissioningNms: n(creel.NodeDecommissioning),
				NumShutdownNms:        n(creel.NodeShutdown),
			}}, nil
		}
	}})
}

func (c *clientDoor) GetApplications(
	ctx context.Context,
	req *pb.GetApplicationsRequestProto,
) (*pb.GetApplicationsResponseProto, error) {
	type R = *pb.GetApplicationsResponseProto
	d, who := c.d, callerOf(ctx)
	keep, err := appFilter(req, who)
	if err != nil {
		return nil, err
	}
	limit := math.MaxInt
	if req.Limit != nil {
		if limit = int(req.GetLimit()); limit < 0 {
			return nil, invalid("the limit of applications is %d; give 0 or more", limit)
		}
	}
	key := listKey(who, "applications", req)
	if body := d.lists.get(key, d.Stamp(), time.Now()); body != nil {
		return encoded(&pb.GetApplicationsResponseProto{}, body), nil
	}
	return later(ctx, d, op[R]{run: func(m *rm.Machine, now time.Time) func() (R, error) {
		stamp := d.Stamp()
		var found []listedApp
		for a := range m.Apps {
			if len(found) >= limit {
				break
			}
			if !keep(a) {
				continue
			}
			viewable := d.may(m, who, a, viewApp)
			if !viewable && req.GetScope() == pb.ApplicationsRequestScopeProto_VIEWABLE {
				continue
			}
			found = append(found, listedApp{a, viewable})
		}
		return func() (R, error) {
			body, err := d.endings.list(
				found,
				func(a listedApp) *pb.ApplicationReportProto { return d.Report(a.view, now, a.viewable) },
			)
			if err != nil {
				return nil, err
			}
			if key != "" {
				d.lists.put(key, encodedList{stamp: stamp, made: now, body: body})
			}
			return encoded(&pb.GetApplicationsResponseProto{}, body), nil
		}
	}})
}

// appFilter is the question of a list as a function.
func appFilter(req *pb.GetApplicationsRequestProto, who Caller) (func(*rm.AppView) bool, error) {
	for _, r := range [][2]*int64{{req.StartBegin, req.StartEnd}, {req.FinishBegin, req.FinishEnd}} {
		if r[0] != nil && r[1] != nil && *r[0] > *r[1] {
			return nil, invalid("begin > end in range (begin, end): (%d, %d)", *r[0], *r[1])
		}
	}
	states := map[creel.ApplicationState]bool{}
	for _, s := range req.GetApplicationStates() {
		states[creel.ApplicationState(s)] = true
	}
	types := map[string]bool{}
	for _, t := range req.GetApplicationTypes() {
		if t = strings.TrimSpace(t); t != "" {
			types[strings.ToLower(t)] = true
		}
	}
	within := func(t time.Time, begin, end *int64) bool {
		ms := millis(t)
		return (begin == nil || ms >= *begin) && (end == nil || ms <= *end)
	}
	return func(a *rm.AppView) bool {
		switch {
		case len(states) > 0 && !states[a.State],
			len(types) > 0 && !types[strings.ToLower(a.Type)],
			len(req.GetUsers()) > 0 && !slices.Contains(req.GetUsers(), a.User),
			req.GetScope() == pb.ApplicationsRequestScopeProto_OWN && a.User != who.User,
			req.Name != nil && a.Name != req.GetName(),
			!within(a.Submitted, req.StartBegin, req.StartEnd), !within(a.Finished, req.FinishBegin, req.FinishEnd):
			return false
		}
		if q := req.GetQueues(); len(q) > 0 &&
			!slices.ContainsFunc(
				q,
				func(name string) bool { return name == string(a.Queue) || name == a.Queue.Leaf() },
			) {
			return false
		}
		if tags := req.GetApplicationTags(); len(tags) > 0 && !slices.ContainsFunc(tags, func(t string) bool {
			return slices.ContainsFunc(a.Tags, func(own string) bool { return strings.EqualFold(own, t) })
		}) {
			return false
		}
		return true
	}, nil
}

func (c *clientDoor) GetClusterNodes(
	ctx context.Context,
	req *pb.GetClusterNodesRequestProto,
) (*pb.GetClusterNodesResponseProto, error) {
	type R = *pb.GetClusterNodesResponseProto
	d := c.d
	key := listKey(Caller{}, "nodes", req) // the same for everyone
	if body := d.lists.get(key, d.Stamp(), time.Now()); body != nil {
		return encoded(&pb.GetClusterNodesResponseProto{}, body), nil
	}
	return later(ctx, d, op[R]{run: func(m *rm.Machine, now time.Time) func() (R, error) {
		stamp := d.Stamp()
		var nodes []rm.NodeView
		for n := range m.Nodes {
			if s := req.GetNodeStates(); len(s) == 0 || slices.Contains(s, pb.NodeStateProto(n.State)) {
				nodes = append(nodes, n)
			}
		}
		return func() (R, error) {
			r := &pb.GetClusterNodesResponseProto{NodeReports: make([]*pb.NodeReportProto, len(nodes))}
			for i := range nodes {
				r.NodeReports[i] = nodeReport(&nodes[i], now)
			}
			if body := d.keep(key, stamp, now, r); body != nil {
				r = encoded(&pb.GetClusterNodesResponseProto{}, body)
			}
			return r, nil
		}
	}})
}

func (c *clientDoor) GetQueueInfo(
	ctx context.Context,
	req *pb.GetQueueInfoRequestProto,
) (*pb.GetQueueInfoResponseProto, error) {
	type R = *pb.GetQueueInfoResponseProto
	d, who := c.d, callerOf(ctx)
	return later(ctx, d, op[R]{run: func(m *rm.Machine, now time.Time) func() (R, error) {
		top, ok := m.Queue(req.GetQueueName())
		if !ok {
			return done(&pb.GetQueueInfoResponseProto{}) // YARN's way to say that there is none
		}
		info := queueInfo(&top, d.cfg.Machine.Queues.Scheduler)
		if req.GetIncludeChildQueues() {
			d.children(m, info, &top, req.GetRecursive())
		}
		if req.GetIncludeApplications() {
			for a := range m.Apps {
				if a.Queue == top.Path && !a.State.Ended() && d.may(m, who, a, viewApp) {
					info.Applications = append(info.Applications, d.Report(a, now, true))
				}
			}
		}
		return done(&pb.GetQueueInfoResponseProto{QueueInfo: info})
	}})
}

func (d *Daemon) children(m *rm.Machine, info *pb.QueueInfoProto, q *rm.QueueView, deep bool) {
	for _, path := range q.Children {
		child, ok := m.Queue(string(path))
		if !ok {
			continue
		}
		i := queueInfo(&child, d.cfg.Machine.Queues.Scheduler)
		if deep {
			d.children(m, i, &child, deep)
		}
		info.ChildQueues = append(info.ChildQueues, i)
	}
}

func (c *clientDoor) GetQueueUserAcls(
	ctx context.Context,
	_ *pb.GetQueueUserAclsInfoRequestProto,
) (*pb.GetQueueUserAclsInfoResponseProto, error) {
	type R = *pb.GetQueueUserAclsInfoResponseProto
	d, who := c.d, callerOf(ctx)
	groups := d.access.groupsOf(who.User)
	return later(ctx, d, op[R]{run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		r := &pb.GetQueueUserAclsInfoResponseProto{}
		admin := !d.cfg.ACLs || d.access.isAdmin(who.User)
		for q := range m.Queues {
			info := &pb.QueueUserACLInfoProto{QueueName: new(string(q.Path))}
			if admin || m.MaySubmit(string(q.Path), who.User, groups) {
				info.UserAcls = append(info.UserAcls, pb.QueueACLProto_QACL_SUBMIT_APPLICATIONS)
			}
			if admin || m.MayAdminister(string(q.Path), who.User, groups) {
				info.UserAcls = append(info.UserAcls, pb.QueueACLProto_QACL_ADMINISTER_QUEUE)
			}
			r.QueueUserAcls = append(r.QueueUserAcls, info)
		}
		return done(r)
	}})
}

// viewable finds an application whose inside the caller may see.
func (d *Daemon) viewable(m *rm.Machine, who Caller, id creel.ApplicationID) (rm.AppView, error) {
	a, ok := m.App(id)
	switch {
	case !ok:
		return a, noSuchApp(id)
	case !d.may(m, who, &a, viewApp):
		return a, denied("User %s does not have privilege to see this application %s", who.User, id)
	}
	return a, nil
}

func (c *clientDoor) GetApplicationAttemptReport(
	ctx context.Context,
	req *pb.GetApplicationAttemptReportRequestProto,
) (*pb.GetApplicationAttemptReportResponseProto, error) {
	type R = *pb.GetApplicationAttemptReportResponseProto
	d, who, id := c.d, callerOf(ctx), pb.ToAttemptID(req.GetApplicationAttemptId())
	return later(ctx, d, op[R]{run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := d.viewable(m, who, id.Application)
		if err != nil {
			return failed[R](err)
		}
		v, ok := m.Attempt(id)
		if !ok {
			return failed[R](
				&creel.Error{
					Kind: creel.ErrAttemptNotFound,
					What: fmt.Sprintf("ApplicationAttempt with id '%s' doesn't exist in RM.", id),
				},
			)
		}
		return done(
			&pb.GetApplicationAttemptReportResponseProto{
				ApplicationAttemptReport: attemptReport(&v, d.trackingURL(&a)),
			},
		)
	}})
}

func (c *clientDoor) GetApplicationAttempts(
	ctx context.Context,
	req *pb.GetApplicationAttemptsRequestProto,
) (*pb.GetApplicationAttemptsResponseProto, error) {
	type R = *pb.GetApplicationAttemptsResponseProto
	d, who, id := c.d, callerOf(ctx), pb.ToApplicationID(req.GetApplicationId())
	return later(ctx, d, op[R]{run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := d.viewable(m, who, id)
		if err != nil {
			return failed[R](err)
		}
		r := &pb.GetApplicationAttemptsResponseProto{}
		for _, v := range m.Attempts(id) {
			r.ApplicationAttempts = append(r.ApplicationAttempts, attemptReport(&v, d.trackingURL(&a)))
		}
		return done(r)
	}})
}

func (c *clientDoor) GetContainerReport(
	ctx context.Context,
	req *pb.GetContainerReportRequestProto,
) (*pb.GetContainerReportResponseProto, error) {
	type R = *pb.GetContainerReportResponseProto
	d, who, id := c.d, callerOf(ctx), pb.ToContainerID(req.GetContainerId())
	return later(ctx, d, op[R]{run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := d.viewable(m, who, id.Attempt.Application)
		if err != nil {
			return failed[R](err)
		}
		v, ok := m.Container(id)
		if !ok {
			return failed[R](
				&creel.Error{
					Kind: creel.ErrContainerNotFound,
					What: fmt.Sprintf("Container with id '%s' doesn't exist in RM.", id),
				},
			)
		}
		return done(
			&pb.GetContainerReportResponseProto{
				ContainerReport: containerReport(&v, logURL(v.HTTPAddress, id, a.User)),
			},
		)
	}})
}

func (c *clientDoor) GetContainers(
	ctx context.Context,
	req *pb.GetContainersRequestProto,
) (*pb.GetContainersResponseProto, error) {
	type R = *pb.GetContainersResponseProto
	d, who, id := c.d, callerOf(ctx), pb.ToAttemptID(req.GetApplicationAttemptId())
	return later(ctx, d, op[R]{run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := d.viewable(m, who, id.Application)
		if err != nil {
			return failed[R](err)
		}
		if _, ok := m.Attempt(id); !ok {
			return failed[R](
				&creel.Error{
					Kind: creel.ErrAttemptNotFound,
					What: fmt.Sprintf("ApplicationAttempt with id '%s' doesn't exist in RM.", id),
				},
			)
		}
		list := m.Containers(id)
		return func() (R, error) {
			r := &pb.GetContainersResponseProto{}
			for i := range list {
				r.Containers = append(
					r.Containers,
					containerReport(&list[i], logURL(list[i].HTTPAddress, list[i].ID, a.User)),
				)
			}
			return r, nil
		}
	}})
}

func (c *clientDoor) FailApplicationAttempt(
	ctx context.Context,
	req *pb.FailApplicationAttemptRequestProto,
) (*pb.FailApplicationAttemptResponseProto, error) {
	type R = *pb.FailApplicationAttemptResponseProto
	d, who, id := c.d, callerOf(ctx), pb.ToAttemptID(req.GetApplicationAttemptId())
	return later(
		ctx,
		d,
		op[R]{
			name:   "failApplicationAttempt",
			target: id.String(),
			run: func(m *rm.Machine, now time.Time) func() (R, error) {
				_, err := d.modifiable(m, who, id.Application)
				if err == nil {
					err = m.FailAttempt(now, id)
				}
				if err != nil {
					return failed[R](err)
				}
				return done(&pb.FailApplicationAttemptResponseProto{})
			},
		},
	)
}

// MoveApplication takes an application to another queue; it returns when that
// is durable.
func (d *Daemon) MoveApplication(ctx context.Context, who Caller, id creel.ApplicationID, queue string) error {
	_, err := await(ctx, d, who, d.move(who, id, queue))
	return err
}

func (c *clientDoor) MoveApplicationAcrossQueues(
	ctx context.Context,
	req *pb.MoveApplicationAcrossQueuesRequestProto,
) (*pb.MoveApplicationAcrossQueuesResponseProto, error) {
	return later(ctx, c.d, c.d.move(callerOf(ctx), pb.ToApplicationID(req.GetApplicationId()), req.GetTargetQueue()))
}

func (d *Daemon) move(
	who Caller,
	id creel.ApplicationID,
	queue string,
) op[*pb.MoveApplicationAcrossQueuesResponseProto] {
	type R = *pb.MoveApplicationAcrossQueuesResponseProto
	return op[R]{
		durable: true,
		name:    "moveApplicationAcrossQueues",
		target:  id.String(),
		run: func(m *rm.Machine, now time.Time) func() (R, error) {
			_, err := d.modifiable(m, who, id)
			if groups := d.access.groupsOf(
				who.User,
			); err == nil && d.cfg.ACLs && !d.access.isAdmin(who.User) &&
				!m.MaySubmit(queue, who.User, groups) {
				err = denied("User %s cannot submit applications to queue %s", who.User, queue)
			}
			if err == nil {
				err = m.Move(now, id, queue)
			}
			if errors.Is(err, creel.ErrQueueNotFound) {
				err = invalid("The specified Queue: %s doesn't exist", queue)
			}
			if err != nil {
				return failed[R](err)
			}
			return done(&pb.MoveApplicationAcrossQueuesResponseProto{})
		},
	}
}

// SetApplicationPriority changes an application's priority and gives the one
// that now holds, which may be capped.
func (d *Daemon) SetApplicationPriority(
	ctx context.Context,
	who Caller,
	id creel.ApplicationID,
	priority int32,
) (int32, error) {
	r, err := await(ctx, d, who, d.priority(who, id, priority))
	return r.GetApplicationPriority().GetPriority(), err
}

func (c *clientDoor) UpdateApplicationPriority(
	ctx context.Context,
	req *pb.UpdateApplicationPriorityRequestProto,
) (*pb.UpdateApplicationPriorityResponseProto, error) {
	return later(
		ctx,
		c.d,
		c.d.priority(
			callerOf(ctx),
			pb.ToApplicationID(req.GetApplicationId()),
			req.GetApplicationPriority().GetPriority(),
		),
	)
}

func (d *Daemon) priority(
	who Caller,
	id creel.ApplicationID,
	priority int32,
) op[*pb.UpdateApplicationPriorityResponseProto] {
	type R = *pb.UpdateApplicationPriorityResponseProto
	return op[R]{
		durable: true,
		name:    "updateApplicationPriority",
		target:  id.String(),
		run: func(m *rm.Machine, now time.Time) func() (R, error) {
			a, err := d.modifiable(m, who, id)
			if err == nil && !a.State.Ended() { // of an ended application it changes nothing
				_, err = m.SetPriority(now, id, priority)
			}
			if err != nil {
				return failed[R](err)
			}
			if after, ok := m.App(id); ok {
				a = after
			}
			return done(&pb.UpdateApplicationPriorityResponseProto{ApplicationPriority: pb.FromPriority(a.Priority)})
		},
	}
}

// SetApplicationLifetime sets when an application is killed; the zero time
// means never.
func (d *Daemon) SetApplicationLifetime(
	ctx context.Context,
	who Caller,
	id creel.ApplicationID,
	deadline time.Time,
) error {
	_, err := await(ctx, d, who, d.timeouts(who, &pb.UpdateApplicationTimeoutsRequestProto{
		ApplicationId: pb.FromApplicationID(id),
		ApplicationTimeouts: []*pb.ApplicationUpdateTimeoutMapProto{
			{
				ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
				ExpireTime:             new(formatLifetime(deadline)),
			},
		},
	}))
	return err
}

// endOfTime is the latest deadline: nanoseconds since 1970 end soon after it.
var endOfTime = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)

func formatLifetime(t time.Time) string {
	if t.IsZero() {
		return unlimitedLifetime
	}
	return t.Format(isoTime)
}

func (c *clientDoor) UpdateApplicationTimeouts(
	ctx context.Context,
	req *pb.UpdateApplicationTimeoutsRequestProto,
) (*pb.UpdateApplicationTimeoutsResponseProto, error) {
	return later(ctx, c.d, c.d.timeouts(callerOf(ctx), req))
}

func (d *Daemon) timeouts(
	who Caller,
	req *pb.UpdateApplicationTimeoutsRequestProto,
) op[*pb.UpdateApplicationTimeoutsResponseProto] {
	type R = *pb.UpdateApplicationTimeoutsResponseProto
	id := pb.ToApplicationID(req.GetApplicationId())
	return op[R]{
		durable: true,
		name:    "updateApplicationTimeouts",
		target:  id.String(),
		run: func(m *rm.Machine, now time.Time) func() (R, error) {
			a, err := d.modifiable(m, who, id)
			switch {
			case err != nil:
				return failed[R](err)
			case len(req.GetApplicationTimeouts()) == 0:
				return failed[R](
					invalid("At least one ApplicationTimeoutType should be configured for updating timeouts."),
				)
			case a.State.Ended():
				return failed[R](invalid("Application %s is in %s state: its timeout cannot be updated", id, a.State))
			}
			for _, t := range req.GetApplicationTimeouts() {
				var deadline time.Time
				if t.GetExpireTime() != unlimitedLifetime {
					if deadline, err = time.Parse(isoTime, t.GetExpireTime()); err != nil {
						return failed[R](
							invalid(
								"Expire time is not in ISO8601 format. ISO8601 supported format is yyyy-MM-dd'T'HH:mm:ss.SSSZ. Configured timeout value is %s",
								t.GetExpireTime(),
							),
						)
					}
					if !deadline.After(now) {
						return failed[R](
							invalid(
								"Expire time is less than current time, current-time=%s expire-time=%s",
								now.Format(isoTime),
								t.GetExpireTime(),
							),
						)
					}
				}
				if deadline.After(endOfTime) {
					deadline = endOfTime
				}
				if err := m.SetLifetime(now, id, deadline); err != nil {
					return failed[R](err)
				}
			}
			return done(&pb.UpdateApplicationTimeoutsResponseProto{ApplicationTimeouts: req.GetApplicationTimeouts()})
		},
	}
}

// SignalContainer forwards a signal to a container at its node's next beat.
func (d *Daemon) SignalContainer(ctx context.Context, who Caller, id creel.ContainerID, command int32) error {
	_, err := await(ctx, d, who, d.signal(who, id, command))
	return err
}

func (c *clientDoor) SignalToContainer(
	ctx context.Context,
	req *pb.SignalContainerRequestProto,
) (*pb.SignalContainerResponseProto, error) {
	return later(ctx, c.d, c.d.signal(callerOf(ctx), pb.ToContainerID(req.GetContainerId()), int32(req.GetCommand())))
}

func (d *Daemon) signal(who Caller, id creel.ContainerID, command int32) op[*pb.SignalContainerResponseProto] {
	type R = *pb.SignalContainerResponseProto
	return op[R]{
		name:   "signalToContainer",
		target: id.String(),
		run: func(m *rm.Machine, now time.Time) func() (R, error) {
			_, err := d.modifiable(m, who, id.Attempt.Application)
			if err == nil {
				err = m.Signal(now, rm.Signal{Container: id, Command: command})
			}
			if errors.Is(err, creel.ErrContainerNotFound) {
				err = invalid("Trying to signal an absent container %s", id)
			}
			if err != nil {
				return failed[R](err)
			}
			return done(&pb.SignalContainerResponseProto{})
		},
	}
}

// Labels, attributes and profiles are not enabled; YARN's answers for that are
// empty lists, and an exception for profiles.

func (c *clientDoor) GetNodeToLabels(
	context.Context,
	*pb.GetNodesToLabelsRequestProto,
) (*pb.GetNodesToLabelsResponseProto, error) {
	return &pb.GetNodesToLabelsResponseProto{}, nil
}

func (c *clientDoor) GetLabelsToNodes(
	context.Context,
	*pb.GetLabelsToNodesRequestProto,
) (*pb.GetLabelsToNodesResponseProto, error) {
	return &pb.GetLabelsToNodesResponseProto{}, nil
}

func (c *clientDoor) GetClusterNodeLabels(
	context.Context,
	*pb.GetClusterNodeLabelsRequestProto,
) (*pb.GetClusterNodeLabelsResponseProto, error) {
	return &pb.GetClusterNodeLabelsResponseProto{}, nil
}

func (c *clientDoor) GetClusterNodeAttributes(
	context.Context,
	*pb.GetClusterNodeAttributesRequestProto,
) (*pb.GetClusterNodeAttributesResponseProto, error) {
	return &pb.GetClusterNodeAttributesResponseProto{}, nil
}

func (c *clientDoor) GetAttributesToNodes(
	context.Context,
	*pb.GetAttributesToNodesRequestProto,
) (*pb.GetAttributesToNodesResponseProto, error) {
	return &pb.GetAttributesToNodesResponseProto{}, nil
}

func (c *clientDoor) GetNodesToAttributes(
	context.Context,
	*pb.GetNodesToAttributesRequestProto,
) (*pb.GetNodesToAttributesResponseProto, error) {
	return &pb.GetNodesToAttributesResponseProto{}, nil
}

var errProfiles = &creel.Error{
	Kind: creel.ErrNotEnabled,
	What: "Resource profile is not enabled, please enable resource profile feature before using its functions. (by setting yarn.resourcemanager.resource-profiles.enabled to true)",
}

func (c *clientDoor) GetResourceProfiles(
	context.Context,
	*pb.GetAllResourceProfilesRequestProto,
) (*pb.GetAllResourceProfilesResponseProto, error) {
	return nil, errProfiles
}

func (c *clientDoor) GetResourceProfile(
	context.Context,
	*pb.GetResourceProfileRequestProto,
) (*pb.GetResourceProfileResponseProto, error) {
	return nil, errProfiles
}

func (c *clientDoor) GetResourceTypeInfo(
	context.Context,
	*pb.GetAllResourceTypeInfoRequestProto,
) (*pb.GetAllResourceTypeInfoResponseProto, error) {
	return &pb.GetAllResourceTypeInfoResponseProto{ResourceTypeInfo: c.d.resourceTypes()}, nil
}

func (d *Daemon) resourceTypes() []*pb.ResourceTypeInfoProto {
	info := func(name, units string) *pb.ResourceTypeInfoProto {
		return &pb.ResourceTypeInfoProto{Name: &name, Units: &units, Type: pb.ResourceTypesProto_COUNTABLE.Enum()}
	}
	list := []*pb.ResourceTypeInfoProto{info(creel.MemoryName, "Mi"), info(creel.VCoresName, "")}
	for _, t := range d.cfg.Machine.ResourceTypes {
		list = append(list, info(t.Name, t.Unit))
	}
	return list
}

var errReservations = yarnrpc.Throw(
	yarnrpc.ClassYarn,
	&creel.Error{Kind: creel.ErrNotEnabled, What: "Reservation is not enabled. Please enable & try again"},
)

func (c *clientDoor) GetNewReservation(
	context.Context,
	*pb.GetNewReservationRequestProto,
) (*pb.GetNewReservationResponseProto, error) {
	return nil, errReservations
}

func (c *clientDoor) SubmitReservation(
	context.Context,
	*pb.ReservationSubmissionRequestProto,
) (*pb.ReservationSubmissionResponseProto, error) {
	return nil, errReservations
}

func (c *clientDoor) UpdateReservation(
	context.Context,
	*pb.ReservationUpdateRequestProto,
) (*pb.ReservationUpdateResponseProto, error) {
	return nil, errReservations
}

func (c *clientDoor) DeleteReservation(
	context.Context,
	*pb.ReservationDeleteRequestProto,
) (*pb.ReservationDeleteResponseProto, error) {
	return nil, errReservations
}

func (c *clientDoor) ListReservations(
	context.Context,
	*pb.ReservationListRequestProto,
) (*pb.ReservationListResponseProto, error) {
	return nil, errReservations
}
