// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// nodesHook adds nodes; the test plays their AMs.
func (c *cluster) nodesHook(ams chan *startedAM) {
	c.nodes(2, func(n *nmrpc.Config) { n.OnStart = hook(ams) })
}

func TestInvalidSubmissions(t *testing.T) {
	c := start(t, config())
	ctx := t.Context()
	for _, k := range []struct {
		name, class, says string
		change            func(*pb.ApplicationSubmissionContextProto)
	}{
		{"no id", yarnrpc.ClassApplicationIDNotProvided, "", func(s *pb.ApplicationSubmissionContextProto) { s.ApplicationId = nil }},
		{"an id above those that were given out", yarnrpc.ClassYarn, "never issued", func(s *pb.ApplicationSubmissionContextProto) {
			s.ApplicationId = &pb.ApplicationIdProto{
				ClusterTimestamp: s.ApplicationId.ClusterTimestamp, Id: new(s.ApplicationId.GetId() + 100),
			}
		}},
		{"no launch context", yarnrpc.ClassYarn, "am_container_spec", func(s *pb.ApplicationSubmissionContextProto) { s.AmContainerSpec = nil }},
		{"no size", yarnrpc.ClassInvalidResource, "no resources", func(s *pb.ApplicationSubmissionContextProto) { s.Resource = nil }},
		{"too large", yarnrpc.ClassInvalidResource, "", func(s *pb.ApplicationSubmissionContextProto) {
			s.Resource = pb.FromResource(creel.NewResource(1<<40, 1))
		}},
		{"negative", yarnrpc.ClassInvalidResource, "", func(s *pb.ApplicationSubmissionContextProto) { s.Resource = pb.FromResource(creel.NewResource(-1, 1)) }},
		{"two requests for any place", yarnrpc.ClassInvalidResource, "*", func(s *pb.ApplicationSubmissionContextProto) {
			s.AmContainerResourceRequest = append(ask(0, 128, 1), ask(0, 128, 1)...)
		}},
		{"a tag that is no text", yarnrpc.ClassYarn, "ASCII", func(s *pb.ApplicationSubmissionContextProto) { s.ApplicationTags = []string{"käse"} }},
		{"too many tags", yarnrpc.ClassYarn, "Too many", func(s *pb.ApplicationSubmissionContextProto) { s.ApplicationTags = strings.Split("abcdefghijklm", "") }},
		{"credentials that are none", yarnrpc.ClassYarn, "HDTS", func(s *pb.ApplicationSubmissionContextProto) {
			s.AmContainerSpec = &pb.ContainerLaunchContextProto{Tokens: []byte("nonsense")}
		}},
		{"a lifetime in the past", yarnrpc.ClassYarn, "timeout", func(s *pb.ApplicationSubmissionContextProto) {
			s.ApplicationTimeouts = []*pb.ApplicationTimeoutMapProto{{ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(), Timeout: new(int64(-5))}}
		}},
		{"forty megabytes", yarnrpc.ClassYarn, "limit", func(s *pb.ApplicationSubmissionContextProto) {
			s.AmContainerSpec = &pb.ContainerLaunchContextProto{Command: []string{strings.Repeat("x", 40<<20)}}
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			id := must(c.as("eve").GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
			s := &pb.ApplicationSubmissionContextProto{
				ApplicationId:   id,
				AmContainerSpec: &pb.ContainerLaunchContextProto{},
				Resource:        pb.FromResource(creel.NewResource(128, 1)),
			}
			k.change(s)
			_, err := c.as("eve").
				SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: s})
			if !hasClass(err, k.class) || !strings.Contains(err.Error(), k.says) {
				t.Fatalf("answered %v", err)
			}
			if _, err := c.as("eve").
				GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: id}); !errors.Is(
				err,
				creel.ErrApplicationNotFound,
			) {
				t.Errorf("the refused application is known: %v", err)
			}
		})
	}
}

// As in YARN, a queue that takes nothing fails the application, not the call.
func TestApplicationForMissingQueueFails(t *testing.T) {
	c := start(t, config())
	for _, queue := range []string{"nowhere", "root"} {
		id := c.submission("bob", func(s *pb.ApplicationSubmissionContextProto) { s.Queue = &queue })
		if r := c.untilState(
			"bob",
			id,
			pb.YarnApplicationStateProto_FAILED,
		); !strings.Contains(
			r.GetDiagnostics(),
			queue,
		) {
			t.Errorf("queue %s: %s", queue, r.GetDiagnostics())
		}
	}
}

func TestTheSameSubmissionTwiceIsOneApplication(t *testing.T) {
	c := start(t, config())
	id := c.submission("bob", nil)
	c.submission("bob", func(s *pb.ApplicationSubmissionContextProto) { s.ApplicationId = pb.FromApplicationID(id) })
	all := must(c.as("bob").GetApplications(t.Context(), &pb.GetApplicationsRequestProto{})).GetApplications()
	if len(all) != 1 {
		t.Errorf("%d applications", len(all))
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	c := start(t, config())
	ams := make(chan *startedAM, 8)
	c.nodesHook(ams)
	ctx := t.Context()
	c.submission("bob", nil)
	m := <-ams
	am := c.amClient(m.token)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 2)}))
	granted := a.GetAllocatedContainers()

	forged := m.token
	forged.Password = []byte("twenty bytes of lies")
	if _, err := c.amClient(forged).Allocate(ctx, &pb.AllocateRequestProto{}); err == nil {
		t.Error("an AMRM token with a wrong password is taken")
	}
	other := must(token.ParseAMRM(m.token.Identifier))
	other.Attempt.Attempt = 9
	stale := m.token
	stale.Identifier = other.Append(nil)
	if _, err := c.amClient(stale).Allocate(ctx, &pb.AllocateRequestProto{}); err == nil {
		t.Error("an AMRM token of an attempt that is not there is taken")
	}
	plain := yarnrpc.NewApplicationMasterProtocolClient(
		c.client,
		c.s.Addresses().Scheduler,
		hrpc.Login{User: m.Container.Attempt.String()},
	)
	if _, err := plain.Allocate(ctx, &pb.AllocateRequestProto{}); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("an AM without a token is answered %v", err)
	}

	// On the node: the token of one container does not start another.
	node := c.nodeClient(a.GetNmTokens()[0])
	bad := granted[0].GetContainerToken().CloneVT()
	bad.Password[3] ^= 1
	if _, err := node.StartContainers(
		ctx,
		&pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{
			{
				ContainerLaunchContext: &pb.ContainerLaunchContextProto{},
				ContainerToken:         bad,
			},
		}},
	); !errors.Is(
		err,
		creel.ErrInvalidToken,
	) {
		t.Errorf("a forged container token: %v", err)
	}
	strange := must(
		node.GetContainerStatuses(ctx, &pb.GetContainerStatusesRequestProto{ContainerId: []*pb.ContainerIdProto{
			pb.FromContainerID(
				creel.NewContainerID(
					creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1},
					0,
					1,
				),
			),
		}}),
	)
	if len(strange.GetFailedRequests()) != 1 {
		t.Errorf("status of another application's container: %v", strange)
	}
}

func TestAsksThatAreRefused(t *testing.T) {
	c := start(t, config())
	c.nodes(1, nil)
	ctx := t.Context()
	_, amrm := c.launchUnmanaged("bob", nil)
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	for _, k := range []struct {
		name, class string
		req         *pb.AllocateRequestProto
	}{
		{"too large", yarnrpc.ClassInvalidResource, &pb.AllocateRequestProto{Ask: ask(1, 1<<30, 1)}},
		{"negative size", yarnrpc.ClassInvalidResource, &pb.AllocateRequestProto{Ask: ask(1, -5, 1)}},
		{"somebody else's container", yarnrpc.ClassInvalidRelease, &pb.AllocateRequestProto{Release: []*pb.ContainerIdProto{
			pb.FromContainerID(creel.NewContainerID(creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}, 0, 1))}}},
		{"everything on the blacklist", yarnrpc.ClassInvalidBlacklist, &pb.AllocateRequestProto{BlacklistRequest: &pb.ResourceBlacklistRequestProto{BlacklistAdditions: []string{"*"}}}},
		{"out of step", yarnrpc.ClassInvalidMasterRequest, &pb.AllocateRequestProto{ResponseId: new(int32(17))}},
	} {
		if _, err := am.Allocate(ctx, k.req); !hasClass(err, k.class) {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	if a := must(
		am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 1)}),
	); len(
		a.GetAllocatedContainers(),
	) != 1 {
		t.Errorf("after the refusals a good ask gets %v", a)
	}
}

func TestMissingObjects(t *testing.T) {
	c := start(t, config())
	ctx, bob := t.Context(), c.as("bob")
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	attempt := pb.FromAttemptID(creel.AttemptID{Application: app, Attempt: 1})
	for name, call := range map[string]func() error{
		"report": func() error {
			_, err := bob.GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(app)})
			return err
		},
		"kill": func() error {
			_, err := bob.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(app)})
			return err
		},
		"attempt": func() error {
			_, err := bob.GetApplicationAttemptReport(ctx, &pb.GetApplicationAttemptReportRequestProto{ApplicationAttemptId: attempt})
			return err
		},
		"attempts": func() error {
			_, err := bob.GetApplicationAttempts(ctx, &pb.GetApplicationAttemptsRequestProto{ApplicationId: pb.FromApplicationID(app)})
			return err
		},
		"list": func() error {
			_, err := bob.GetContainers(ctx, &pb.GetContainersRequestProto{ApplicationAttemptId: attempt})
			return err
		},
		"move": func() error {
			_, err := bob.MoveApplicationAcrossQueues(ctx, &pb.MoveApplicationAcrossQueuesRequestProto{ApplicationId: pb.FromApplicationID(app), TargetQueue: new("default")})
			return err
		},
		"priority": func() error {
			_, err := bob.UpdateApplicationPriority(ctx, &pb.UpdateApplicationPriorityRequestProto{ApplicationId: pb.FromApplicationID(app), ApplicationPriority: pb.FromPriority(1)})
			return err
		},
	} {
		if err := call(); !errors.Is(err, creel.ErrApplicationNotFound) {
			t.Errorf("%s of an unknown application: %v", name, err)
		}
	}
	if _, err := bob.GetResourceProfiles(
		ctx,
		&pb.GetAllResourceProfilesRequestProto{},
	); !hasClass(
		err,
		yarnrpc.ClassFeatureNotEnabled,
	) {
		t.Errorf("profiles: %v", err)
	}
	if _, err := bob.GetNewReservation(ctx, &pb.GetNewReservationRequestProto{}); !hasClass(err, yarnrpc.ClassYarn) {
		t.Errorf("reservations: %v", err)
	}
	if r, err := bob.GetQueueInfo(
		ctx,
		&pb.GetQueueInfoRequestProto{QueueName: new("nowhere")},
	); err != nil ||
		r.GetQueueInfo() != nil {
		t.Errorf("an unknown queue: %v, %v", r, err)
	}
}

func TestPermissions(t *testing.T) {
	cfg := config()
	cfg.ACLs = true
	cfg.Machine.Queues.Root.Submit, cfg.Machine.Queues.Root.Admin = queues.ACL{}, queues.ACL{}
	cfg.Machine.Queues.Root.Children[0].Submit = queues.ACL{Users: []string{"bob", "carol"}}
	cfg.Machine.Queues.Root.Children[0].Admin = queues.ACL{Users: []string{"queen"}}
	cfg.Proxies = impersonation.Rules{"oozie": {Hosts: []string{"127.0.0.0/8"}, Users: []string{"bob"}}}
	c := start(t, cfg)
	ctx := t.Context()
	id := c.submission("bob", func(s *pb.ApplicationSubmissionContextProto) {
		s.AmContainerSpec.Application_ACLs = []*pb.ApplicationACLMapProto{
			{AccessType: pb.ApplicationAccessTypeProto_APPACCESS_VIEW_APP.Enum(), Acl: new("carol")},
		}
	})
	kill := func(user string) error {
		_, err := c.as(user).
			ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)})
		return err
	}
	submit := func(user string) error {
		other := must(c.as(user).GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
		_, err := c.as(user).
			SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId:   other,
				AmContainerSpec: &pb.ContainerLaunchContextProto{},
				Resource:        pb.FromResource(creel.NewResource(128, 1)),
			}})
		return err
	}
	if err := submit("eve"); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("eve submits: %v", err)
	}
	for _, user := range []string{"eve", "carol"} {
		if err := kill(user); !errors.Is(err, creel.ErrNotPermitted) {
			t.Errorf("%s kills: %v", user, err)
		}
	}
	if r := c.report(
		"eve",
		id,
	); r.GetDiagnostics() != "N/A" ||
		r.GetCurrentApplicationAttemptId().GetAttemptId() != -1 {
		t.Errorf("eve sees %v", r)
	}
	if r := c.report("carol", id); r.GetCurrentApplicationAttemptId().GetAttemptId() == -1 {
		t.Errorf("carol does not see %v", r)
	}
	proxied := yarnrpc.NewApplicationClientProtocolClient(
		c.client,
		c.s.Addresses().Client,
		hrpc.Login{User: "bob", RealUser: "oozie"},
	)
	if _, err := proxied.GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{}); err != nil {
		t.Errorf("oozie as bob: %v", err)
	}
	for _, login := range []hrpc.Login{{User: "carol", RealUser: "oozie"}, {User: "bob", RealUser: "eve"}} {
		peer := yarnrpc.NewApplicationClientProtocolClient(c.client, c.s.Addresses().Client, login)
		if _, err := peer.GetClusterMetrics(
			ctx,
			&pb.GetClusterMetricsRequestProto{},
		); !errors.Is(
			err,
			creel.ErrNotPermitted,
		) {
			t.Errorf("%s as %s: %v", login.RealUser, login.User, err)
		}
	}
	if _, err := c.admin("bob").
		RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{}); !errors.Is(
		err,
		creel.ErrNotPermitted,
	) {
		t.Errorf("bob refreshes queues: %v", err)
	}
	if _, err := c.admin("root").RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{}); err != nil {
		t.Errorf("root refreshes queues: %v", err)
	}
	if err := kill("queen"); err != nil {
		t.Errorf("the queue's administrator kills: %v", err)
	}
}

func TestDelegationTokens(t *testing.T) {
	cfg := config()
	cfg.Dir = t.TempDir()
	c := start(t, cfg)
	ctx := t.Context()
	issued := must(
		c.as("bob").GetDelegationToken(ctx, &pb.GetDelegationTokenRequestProto{Renewer: new("yarn")}),
	).GetToken()
	bearer := yarnrpc.NewApplicationClientProtocolClient(
		c.client,
		c.s.Addresses().Client,
		login(token.FromProto(issued)),
	)
	id := must(bearer.GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
	must(
		bearer.SubmitApplication(
			ctx,
			&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId:   id,
				AmContainerSpec: &pb.ContainerLaunchContextProto{},
				Resource:        pb.FromResource(creel.NewResource(128, 1)),
			}},
		),
	)
	if r := c.report("bob", pb.ToApplicationID(id)); r.GetUser() != "bob" {
		t.Errorf("the bearer of bob's token submitted as %s", r.GetUser())
	}
	if _, err := c.as("eve").
		RenewDelegationToken(ctx, &pb.RenewDelegationTokenRequestProto{Token: issued}); !errors.Is(
		err,
		creel.ErrNotPermitted,
	) {
		t.Errorf("eve renews: %v", err)
	}
	r := must(c.as("yarn").RenewDelegationToken(ctx, &pb.RenewDelegationTokenRequestProto{Token: issued}))
	if time.UnixMilli(int64(r.GetNewExpiryTime())).Before(time.Now().Add(23 * time.Hour)) {
		t.Errorf("renewed until %d", r.GetNewExpiryTime())
	}
	must(c.as("bob").CancelDelegationToken(ctx, &pb.CancelDelegationTokenRequestProto{Token: issued}))
	if _, err := c.as("yarn").
		RenewDelegationToken(ctx, &pb.RenewDelegationTokenRequestProto{Token: issued}); !errors.Is(
		err,
		creel.ErrInvalidToken,
	) {
		t.Errorf("a cancelled token is renewed: %v", err)
	}
}
