// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func newClient(t *testing.T) *hrpc.Client {
	t.Helper()
	c := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return c
}

func credential(p *yarnpb.TokenProto) *hrpc.Credential {
	return &hrpc.Credential{
		Identifier: p.GetIdentifier(),
		Password:   p.GetPassword(),
		Kind:       p.GetKind(),
		Service:    p.GetService(),
	}
}

// spoiled returns a token whose password is wrong in one bit.
func spoiled(p *yarnpb.TokenProto) *yarnpb.TokenProto {
	p = proto.CloneOf(p)
	p.Password[0] ^= 1
	return p
}

// cluster is a real RM with a real NodeManager, and our client of its protocols.
type cluster struct {
	rm     *hadoop.ResourceManager
	nm     *hadoop.NodeManager
	client *hrpc.Client
}

func startCluster(t *testing.T, conf hadoop.Conf) *cluster {
	t.Helper()
	c := &cluster{rm: hadoop.StartRM(t, hadoop.RM{Conf: conf})}
	c.nm = hadoop.StartNM(t, hadoop.NM{RM: c.rm.Addresses})
	c.client = newClient(t)
	return c
}

func (c *cluster) as(login hrpc.Login) yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(c.client, c.rm.Addresses.Client, login)
}

func (c *cluster) amClient(token *yarnpb.TokenProto) yarnrpc.ApplicationMasterProtocolClient {
	return yarnrpc.NewApplicationMasterProtocolClient(
		c.client,
		c.rm.Scheduler,
		hrpc.Login{Credential: credential(token)},
	)
}

// submitUnmanaged submits an application with an unmanaged AM as the user
// and waits for the token of its attempt.
func (c *cluster) submitUnmanaged(
	t *testing.T,
	ctx context.Context,
	user string,
) (creel.ApplicationID, *yarnpb.TokenProto) {
	t.Helper()
	rm := c.as(hrpc.Login{User: user})
	id := submitUnmanaged(t, ctx, rm)
	var token *yarnpb.TokenProto
	c.rm.Await(t, "the token of the unmanaged AM", func() bool {
		r, err := rm.GetApplicationReport(ctx, &yarnpb.GetApplicationReportRequestProto{ApplicationId: id})
		if err != nil {
			t.Fatal(err)
		}
		token = r.GetApplicationReport().GetAmRmToken()
		return token != nil
	})
	return yarnpb.ToApplicationID(id), token
}

// submitUnmanaged submits an application with an unmanaged AM.
func submitUnmanaged(
	t *testing.T,
	ctx context.Context,
	rm yarnrpc.ApplicationClientProtocolClient,
) *yarnpb.ApplicationIdProto {
	t.Helper()
	fresh, err := rm.GetNewApplication(ctx, &yarnpb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rm.SubmitApplication(
		ctx,
		&yarnpb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &yarnpb.ApplicationSubmissionContextProto{
			ApplicationId:   fresh.ApplicationId,
			ApplicationName: proto.String("unmanaged"),
			Queue:           proto.String("default"),
			AmContainerSpec: &yarnpb.ContainerLaunchContextProto{},
			UnmanagedAm:     proto.Bool(true),
			Resource:        yarnpb.FromResource(creel.Resource{MemoryMB: 128, VCores: 1}),
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return fresh.ApplicationId
}

func TestOurClientAgainstARealCluster(t *testing.T) {
	c := startCluster(
		t,
		hadoop.Conf{
			"yarn.acl.enable": "true",
			"yarn.admin.acl":  "boss",
			"yarn.scheduler.capacity.root.acl_administer_queue":    "boss",
			"yarn.scheduler.capacity.root.acl_submit_applications": "*",
			"yarn.resourcemanager.delegation.token.renew-interval": "20000",
		},
	)
	ctx, cancel := context.WithTimeout(context.Background(), 2*process.Guard)
	defer cancel()
	alice := c.as(hrpc.Login{User: "alice"})
	delegated := c.delegate(t, ctx)

	metrics, err := alice.GetClusterMetrics(ctx, &yarnpb.GetClusterMetricsRequestProto{})
	if err != nil || metrics.GetClusterMetrics().GetNumNodeManagers() != 1 ||
		metrics.GetClusterMetrics().GetNumActiveNms() != 1 {
		t.Fatalf("metrics %v, %v", metrics, err)
	}

	app, token := c.submitUnmanaged(t, ctx, "alice")
	if token.GetKind() != "YARN_AM_RM_TOKEN" || token.GetService() != "" {
		t.Errorf("token of kind %q, service %q", token.GetKind(), token.GetService())
	}
	request := &yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)}

	t.Run("who may not", func(t *testing.T) {
		bob := c.as(hrpc.Login{User: "bob"})
		if _, err := bob.ForceKillApplication(
			ctx,
			&yarnpb.KillApplicationRequestProto{ApplicationId: request.ApplicationId},
		); !errors.Is(
			err,
			creel.ErrNotPermitted,
		) {
			t.Errorf("bob kills alice's application: %v", err)
		}
		if r, err := bob.GetApplicationReport(ctx, request); err != nil || r.GetApplicationReport().AmRmToken != nil {
			t.Errorf("bob asks for alice's token: %v, %v", r.GetApplicationReport().GetAmRmToken(), err)
		}
		if _, err := c.as(hrpc.Login{User: "alice", RealUser: "mallory"}).
			GetApplicationReport(ctx, request); !errors.Is(
			err,
			creel.ErrNotPermitted,
		) {
			t.Errorf("mallory acts for alice: %v", err)
		}
		if _, err := c.as(hrpc.Login{User: "alice", RealUser: hadoop.OSUser(t)}).
			GetApplicationReport(ctx, request); err != nil {
			t.Errorf("a proxy user acts for alice: %v", err)
		}
		unknown := &yarnpb.GetApplicationReportRequestProto{
			ApplicationId: yarnpb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 1, ID: 1}),
		}
		if _, err := alice.GetApplicationReport(ctx, unknown); !errors.Is(err, creel.ErrApplicationNotFound) {
			t.Errorf("an unknown application: %v", err)
		}
	})
	t.Run("which token may not", func(t *testing.T) {
		registration := &yarnpb.RegisterApplicationMasterRequestProto{
			Host:        proto.String(""),
			RpcPort:     proto.Int32(-1),
			TrackingUrl: proto.String(""),
		}
		if _, err := c.amClient(spoiled(token)).
			RegisterApplicationMaster(ctx, registration); !errors.Is(
			err,
			creel.ErrInvalidToken,
		) {
			t.Errorf("wrong password: %v", err)
		}
		other := proto.CloneOf(token)
		other.Identifier = bytes.Replace(other.Identifier, []byte{0x08, byte(app.ID)}, []byte{0x08, 77}, 1)
		if bytes.Equal(other.Identifier, token.Identifier) {
			t.Fatalf("the identifier %x does not hold the application's number", token.Identifier)
		}
		if _, err := c.amClient(other).
			RegisterApplicationMaster(ctx, registration); !errors.Is(
			err,
			creel.ErrInvalidToken,
		) {
			t.Errorf("token of an unknown attempt: %v", err)
		}
		none := yarnrpc.NewApplicationMasterProtocolClient(c.client, c.rm.Scheduler, hrpc.Login{User: "alice"})
		if _, err := none.RegisterApplicationMaster(ctx, registration); !errors.Is(err, creel.ErrNotPermitted) {
			t.Errorf("no token at all: %v", err)
		}
	})

	am := c.amClient(token)
	if _, err := am.Allocate(
		ctx,
		&yarnpb.AllocateRequestProto{ResponseId: proto.Int32(0)},
	); !errors.Is(
		err,
		creel.ErrNotRegistered,
	) {
		t.Errorf("allocate before register: %v", err)
	}
	registered, err := am.RegisterApplicationMaster(
		ctx,
		&yarnpb.RegisterApplicationMasterRequestProto{
			Host:        proto.String("localhost"),
			RpcPort:     proto.Int32(-1),
			TrackingUrl: proto.String(""),
		},
	)
	if err != nil || registered.GetQueue() != "root.default" && registered.GetQueue() != "default" ||
		registered.GetMaximumCapability().GetMemory() != 4096 {
		t.Fatalf("register: %v, %v", registered, err)
	}

	containers, nmToken, id := allocate(t, ctx, c, am, 2)
	t.Run("containers on the real NodeManager", func(t *testing.T) { runContainers(t, ctx, c, containers, nmToken) })

	// The ended containers come back as completed.
	want := map[int64]bool{containers[0].GetId().GetId(): true, containers[1].GetId().GetId(): true}
	c.rm.Await(t, "both containers completed", func() bool {
		r, err := am.Allocate(
			ctx,
			&yarnpb.AllocateRequestProto{ResponseId: proto.Int32(id), Progress: proto.Float32(1)},
		)
		if err != nil {
			t.Fatal(err)
		}
		id = r.GetResponseId()
		for _, s := range r.GetCompletedContainerStatuses() {
			delete(want, s.GetContainerId().GetId())
		}
		return len(want) == 0
	})
	finish := &yarnpb.FinishApplicationMasterRequestProto{
		FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
		Diagnostics:            proto.String("done"),
	}
	c.rm.Await(t, "the end", func() bool {
		r, err := am.FinishApplicationMaster(ctx, finish)
		if err != nil {
			t.Fatal(err)
		}
		return r.GetIsUnregistered()
	})
	c.rm.Await(t, "FINISHED", func() bool {
		r, err := alice.GetApplicationReport(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		return r.GetApplicationReport().GetYarnApplicationState() == yarnpb.YarnApplicationStateProto_FINISHED &&
			r.GetApplicationReport().GetFinalApplicationStatus() == yarnpb.FinalApplicationStatusProto_APP_SUCCEEDED
	})

	// The token has died with the attempt: a new connection is refused, and a
	// call on the old one finds no attempt.
	if _, err := yarnrpc.NewApplicationMasterProtocolClient(newClient(t), c.rm.Scheduler, hrpc.Login{Credential: credential(token)}).
		Allocate(ctx, &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(id)}); !errors.Is(
		err,
		creel.ErrInvalidToken,
	) {
		t.Errorf("an expired token: %v", err)
	}
	if _, err := am.Allocate(
		ctx,
		&yarnpb.AllocateRequestProto{ResponseId: proto.Int32(id)},
	); !errors.Is(
		err,
		creel.ErrAttemptNotFound,
	) {
		t.Errorf("allocate after the end: %v", err)
	}

	// The delegation token has been getting old all the while.
	c.rm.Await(t, "the delegation token expired", func() bool {
		_, err := yarnrpc.NewApplicationClientProtocolClient(newClient(t), c.rm.Addresses.Client, hrpc.Login{Credential: credential(delegated)}).
			GetClusterMetrics(ctx, &yarnpb.GetClusterMetricsRequestProto{})
		if err != nil && !errors.Is(err, creel.ErrInvalidToken) {
			t.Fatalf("an expired delegation token: %v", err)
		}
		return err != nil
	})
}

// delegate is the life of a real ResourceManager's delegation tokens as our
// code sees it. The token it returns is good until it expires.
func (c *cluster) delegate(t *testing.T, ctx context.Context) *yarnpb.TokenProto {
	t.Helper()
	alice, bob := c.as(hrpc.Login{User: "alice"}), c.as(hrpc.Login{User: "bob"})
	take := func() *yarnpb.TokenProto {
		t.Helper()
		r, err := alice.GetDelegationToken(ctx, &yarnpb.GetDelegationTokenRequestProto{Renewer: proto.String("bob")})
		if err != nil || r.GetToken().GetKind() != token.KindDelegation {
			t.Fatalf("a delegation token: %v, %v", r, err)
		}
		return r.GetToken()
	}
	with := func(p *yarnpb.TokenProto) yarnrpc.ApplicationClientProtocolClient {
		return yarnrpc.NewApplicationClientProtocolClient(
			newClient(t),
			c.rm.Addresses.Client,
			hrpc.Login{Credential: credential(p)},
		)
	}
	metrics := &yarnpb.GetClusterMetricsRequestProto{}

	good := take()
	id, err := token.ParseDelegation(good.GetIdentifier())
	if err != nil || id.Owner != "alice" || id.Renewer != "bob" || id.RealUser != "" || id.Sequence < 1 ||
		id.Max.Sub(id.Issued) != 7*24*time.Hour {
		t.Errorf("the identifier reads %+v, %v", id, err)
	}
	if again := id.Append(nil); !bytes.Equal(again, good.GetIdentifier()) {
		t.Errorf("the identifier\n%x is written as\n%x", good.GetIdentifier(), again)
	}

	// The token's owner counts, whatever name the caller uses; the rest of the call reaches the RM.
	ctx = hrpc.WithOptions(ctx, hrpc.CallOptions{
		CallerContext: hrpc.CallerContext{Context: "creel-on-the-wire"},
		Trace: hrpc.TraceInfo{
			TraceID:     7,
			ParentID:    8,
			SpanContext: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
		},
	})
	holder := with(good)
	app := submitUnmanaged(t, ctx, holder)
	if r, err := holder.GetApplicationReport(
		ctx,
		&yarnpb.GetApplicationReportRequestProto{ApplicationId: app},
	); err != nil ||
		r.GetApplicationReport().GetUser() != "alice" {
		t.Errorf("submitted with the token: %v, %v", r, err)
	}
	if _, err := holder.ForceKillApplication(ctx, &yarnpb.KillApplicationRequestProto{ApplicationId: app}); err != nil {
		t.Errorf("killed with the token: %v", err)
	}
	c.rm.Await(
		t,
		"the caller context in the RM's audit log",
		func() bool { return strings.Contains(c.rm.Output(), "CALLERCONTEXT=creel-on-the-wire") },
	)

	if _, err := with(spoiled(good)).GetClusterMetrics(ctx, metrics); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("a wrong password: %v", err)
	}
	if _, err := alice.RenewDelegationToken(
		ctx,
		&yarnpb.RenewDelegationTokenRequestProto{Token: good},
	); !errors.Is(
		err,
		creel.ErrNotPermitted,
	) {
		t.Errorf("renewed by its owner, who is not its renewer: %v", err)
	}
	if r, err := bob.RenewDelegationToken(
		ctx,
		&yarnpb.RenewDelegationTokenRequestProto{Token: good},
	); err != nil ||
		int64(r.GetNewExpiryTime()) < id.Issued.UnixMilli()+20_000 {
		t.Errorf("renewed: %v, %v", r, err)
	}
	cancelled := take()
	if _, err := alice.CancelDelegationToken(
		ctx,
		&yarnpb.CancelDelegationTokenRequestProto{Token: cancelled},
	); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if _, err := with(cancelled).GetClusterMetrics(ctx, metrics); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("a cancelled token: %v", err)
	}
	return good
}

// allocate asks for n containers of 128 MB until they have come, with the
// token for their node.
func allocate(
	t *testing.T,
	ctx context.Context,
	c *cluster,
	am yarnrpc.ApplicationMasterProtocolClient,
	n int32,
) ([]*yarnpb.ContainerProto, *yarnpb.TokenProto, int32) {
	t.Helper()
	ask := []*yarnpb.ResourceRequestProto{
		{
			Priority:      &yarnpb.PriorityProto{Priority: proto.Int32(7)},
			ResourceName:  proto.String("*"),
			NumContainers: &n,
			Capability:    yarnpb.FromResource(creel.Resource{MemoryMB: 128, VCores: 1}),
			RelaxLocality: proto.Bool(true),
			// An RM that has opportunistic containers switched on fails without it.
			ExecutionTypeRequest: &yarnpb.ExecutionTypeRequestProto{
				ExecutionType: yarnpb.ExecutionTypeProto_GUARANTEED.Enum(),
			},
		},
	}
	var containers []*yarnpb.ContainerProto
	var nmToken *yarnpb.TokenProto
	var id int32
	c.rm.Await(t, "containers", func() bool {
		r, err := am.Allocate(ctx, &yarnpb.AllocateRequestProto{Ask: ask, ResponseId: &id})
		if err != nil {
			t.Fatal(err)
		}
		ask = nil // it is absolute: sent once
		if r.GetResponseId() != id+1 {
			t.Fatalf("response id %d after %d", r.GetResponseId(), id)
		}
		id = r.GetResponseId()
		containers = append(containers, r.GetAllocatedContainers()...)
		for _, token := range r.GetNmTokens() {
			nmToken = token.GetToken()
		}
		return len(containers) == int(n)
	})
	if nmToken.GetKind() != "NMToken" {
		t.Fatalf("no token for the node: %v", nmToken)
	}
	for _, got := range containers {
		if got.GetPriority().GetPriority() != 7 || got.GetResource().GetMemory() != 128 ||
			yarnpb.ToNodeID(got.GetNodeId()).String() != c.nm.ID ||
			got.GetContainerToken().GetKind() != "ContainerToken" {
			t.Errorf("container %v", got)
		}
	}
	// A heartbeat of the far past is refused, a repeated one answered again.
	if _, err := am.Allocate(
		ctx,
		&yarnpb.AllocateRequestProto{ResponseId: proto.Int32(id - 100)},
	); !errors.Is(
		err,
		creel.ErrInvalidRequest,
	) {
		t.Errorf("a stale heartbeat: %v", err)
	}
	if r, err := am.Allocate(
		ctx,
		&yarnpb.AllocateRequestProto{ResponseId: proto.Int32(id - 1)},
	); err != nil ||
		r.GetResponseId() != id {
		t.Errorf("a repeated heartbeat: %v, %v", r, err)
	}
	return containers, nmToken, id
}

// runContainers starts one container that runs on and one that ends by
// itself, asks for their states, and stops the first.
func runContainers(
	t *testing.T,
	ctx context.Context,
	c *cluster,
	containers []*yarnpb.ContainerProto,
	token *yarnpb.TokenProto,
) {
	node := func(token *yarnpb.TokenProto) yarnrpc.ContainerManagementProtocolClient {
		return yarnrpc.NewContainerManagementProtocolClient(
			c.client,
			c.nm.Address,
			hrpc.Login{Credential: credential(token)},
		)
	}
	file := filepath.Join(t.TempDir(), "ran")
	launch := func(container *yarnpb.ContainerProto, token *yarnpb.TokenProto, command string) *yarnpb.StartContainersRequestProto {
		return &yarnpb.StartContainersRequestProto{StartContainerRequest: []*yarnpb.StartContainerRequestProto{{
			ContainerToken: token,
			ContainerLaunchContext: &yarnpb.ContainerLaunchContextProto{
				Command:     []string{command},
				Environment: []*yarnpb.StringStringMapProto{{Key: proto.String("WHERE"), Value: &file}},
			},
		}}}
	}
	long, short := containers[0], containers[1]

	if _, err := node(
		spoiled(token),
	).StartContainers(ctx, launch(long, long.ContainerToken, "true")); !errors.Is(
		err,
		creel.ErrInvalidToken,
	) {
		t.Errorf("wrong NM token: %v", err)
	}
	if _, err := yarnrpc.NewContainerManagementProtocolClient(c.client, c.nm.Address, hrpc.Login{User: "alice"}).
		StartContainers(ctx, launch(long, long.ContainerToken, "true")); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("no NM token: %v", err)
	}
	nm := node(token)
	r, err := nm.StartContainers(ctx, launch(long, spoiled(long.ContainerToken), "true"))
	if err == nil && len(r.GetFailedRequests()) == 1 {
		err = yarnrpc.FromSerialized(r.GetFailedRequests()[0].GetException())
	}
	if !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("wrong container token: %v, %v", r, err)
	}

	for _, s := range []*yarnpb.StartContainersRequestProto{
		launch(long, long.ContainerToken, "exec sleep 1000"),
		launch(short, short.ContainerToken, `echo "$CONTAINER_ID" > "$WHERE"; exit 3`),
	} {
		r, err := nm.StartContainers(ctx, s)
		if err != nil || len(r.GetSucceededRequests()) != 1 || len(r.GetFailedRequests()) != 0 {
			t.Fatalf("start: %v, %v", r, err)
		}
		if len(r.GetServicesMetaData()) != 1 || r.GetServicesMetaData()[0].GetKey() != "mapreduce_shuffle" ||
			len(r.GetServicesMetaData()[0].GetValue()) != 4 {
			t.Errorf("data of services: %v", r.GetServicesMetaData())
		}
	}
	status := func(id *yarnpb.ContainerIdProto) *yarnpb.ContainerStatusProto {
		r, err := nm.GetContainerStatuses(
			ctx,
			&yarnpb.GetContainerStatusesRequestProto{ContainerId: []*yarnpb.ContainerIdProto{id}},
		)
		if err != nil || len(r.GetStatus()) != 1 {
			t.Fatalf("status: %v, %v", r, err)
		}
		return r.GetStatus()[0]
	}
	c.nm.Await(t, "the short container's end", func() bool {
		return status(short.Id).GetState() == yarnpb.ContainerStateProto_C_COMPLETE
	})
	if code := status(short.Id).GetExitStatus(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if output, err := os.ReadFile(
		file,
	); err != nil ||
		strings.TrimSpace(string(output)) != yarnpb.ToContainerID(short.Id).String() {
		t.Errorf("the container wrote %q, %v", output, err)
	}
	c.nm.Await(t, "the long container's process", func() bool {
		return status(long.Id).GetState() == yarnpb.ContainerStateProto_C_RUNNING &&
			slices.Contains(sleeping(t, c.nm.Dir()), "sleep 1000")
	})
	stopped, err := nm.StopContainers(
		ctx,
		&yarnpb.StopContainersRequestProto{ContainerId: []*yarnpb.ContainerIdProto{long.Id}},
	)
	if err != nil || len(stopped.GetSucceededRequests()) != 1 {
		t.Fatalf("stop: %v, %v", stopped, err)
	}
	c.nm.Await(t, "the long container's end", func() bool {
		s := status(long.Id)
		return s.GetState() == yarnpb.ContainerStateProto_C_COMPLETE && s.GetExitStatus() != 0
	})
	if left := sleeping(t, c.nm.Dir()); len(left) != 0 {
		t.Errorf("still running: %q", left)
	}
}

// sleeping is the command lines of the sleep processes that run in the
// directory or below.
func sleeping(t *testing.T, dir string) []string {
	t.Helper()
	proc, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range proc {
		cwd, err := os.Readlink(filepath.Join(p, "cwd"))
		if err != nil || !strings.HasPrefix(cwd, dir) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err != nil || !strings.HasPrefix(string(line), "sleep\x00") {
			continue
		}
		out = append(out, strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " "))
	}
	return out
}

// The RM goes away under a call and comes back: a call that certainly did not arrive reports so, and the client works
// again by itself.
func TestOurClientFindsARestartedRM(t *testing.T) {
	rm := hadoop.StartRM(t, hadoop.RM{})
	ctx, cancel := context.WithTimeout(context.Background(), 2*process.Guard)
	defer cancel()
	us := yarnrpc.NewApplicationClientProtocolClient(newClient(t), rm.Addresses.Client, hrpc.Login{User: "alice"})
	if _, err := us.GetClusterMetrics(ctx, &yarnpb.GetClusterMetricsRequestProto{}); err != nil {
		t.Fatal(err)
	}
	rm.Stop()
	_, err := us.GetClusterMetrics(ctx, &yarnpb.GetClusterMetricsRequestProto{})
	var transport *hrpc.TransportError
	if !errors.As(err, &transport) || !errors.Is(err, creel.ErrUnavailable) || transport.Sent {
		t.Errorf("with the RM down: %v", err)
	}
	rm.Restart(t)
	if _, err := us.GetClusterMetrics(ctx, &yarnpb.GetClusterMetricsRequestProto{}); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	<-short.Done()
	if _, err := us.GetClusterMetrics(
		short,
		&yarnpb.GetClusterMetricsRequestProto{},
	); !errors.Is(
		err,
		context.DeadlineExceeded,
	) {
		t.Errorf("a deadline that is over: %v", err)
	}
}
