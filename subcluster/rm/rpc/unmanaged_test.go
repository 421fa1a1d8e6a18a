// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func unmanaged(s *pb.ApplicationSubmissionContextProto) {
	s.UnmanagedAm, s.Resource = new(true), nil
	s.AmContainerSpec = &pb.ContainerLaunchContextProto{}
}

// attemptState is the state of an application's current attempt.
func (c *cluster) attemptState(user string, id creel.ApplicationID) pb.YarnApplicationAttemptStateProto {
	r := must(c.as(user).GetApplicationAttemptReport(c.t.Context(), &pb.GetApplicationAttemptReportRequestProto{
		ApplicationAttemptId: pb.FromAttemptID(creel.AttemptID{Application: id, Attempt: 1})}))
	return r.GetApplicationAttemptReport().GetYarnApplicationAttemptState()
}

// launchUnmanaged submits an unmanaged application and fetches its token the way
// Hadoop's launcher does.
func (c *cluster) launchUnmanaged(
	user string,
	change func(*pb.ApplicationSubmissionContextProto),
) (creel.ApplicationID, token.Token) {
	id := c.submission(user, func(s *pb.ApplicationSubmissionContextProto) {
		unmanaged(s)
		if change != nil {
			change(s)
		}
	})
	c.untilState(user, id, pb.YarnApplicationStateProto_ACCEPTED)
	c.until("the attempt is launched", func() bool {
		return c.attemptState(user, id) == pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_LAUNCHED
	})
	return id, token.FromProto(c.report(user, id).GetAmRmToken())
}

func TestAnUnmanagedAM(t *testing.T) {
	c := start(t, config())
	c.nodes(2, nil)
	ctx := t.Context()
	id, amrm := c.launchUnmanaged("bob", nil)
	if len(amrm.Identifier) == 0 {
		t.Fatal("the owner's report carries no token")
	}
	if c.report("eve", id).GetAmRmToken() != nil {
		t.Error("a stranger's report carries the token")
	}
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{Host: new("here")}))
	if r := c.untilState(
		"bob",
		id,
		pb.YarnApplicationStateProto_RUNNING,
	); r.GetAmRmToken() != nil ||
		!r.GetUnmanagedApplication() {
		t.Errorf("after registration the report is %v", r)
	}
	if _, err := am.RegisterApplicationMaster(
		ctx,
		&pb.RegisterApplicationMasterRequestProto{},
	); !hasClass(
		err,
		yarnrpc.ClassInvalidMasterRequest,
	) {
		t.Errorf("registered twice: %v", err)
	}
	a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 1)}))
	if len(a.GetAllocatedContainers()) != 1 || pb.ToContainerID(a.GetAllocatedContainers()[0].GetId()).Sequence() != 1 {
		t.Fatalf("the first container of an unmanaged attempt: %v", a)
	}
	if done := must(
		am.FinishApplicationMaster(
			ctx,
			&pb.FinishApplicationMasterRequestProto{
				FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			},
		),
	); !done.GetIsUnregistered() {
		t.Error("an unmanaged AM is not unregistered at once")
	}
	c.untilState("bob", id, pb.YarnApplicationStateProto_FINISHED)
	// The answer, and its connection, may have been lost.
	other := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer other.Close()
	am = yarnrpc.NewApplicationMasterProtocolClient(other, c.s.Addresses().Scheduler, login(amrm))
	if done, err := am.FinishApplicationMaster(ctx,
		&pb.FinishApplicationMasterRequestProto{}); err != nil || !done.GetIsUnregistered() {
		t.Errorf("a goodbye that is repeated on another connection is answered %v, %v", done, err)
	}
	if _, err := am.Allocate(ctx, &pb.AllocateRequestProto{}); !errors.Is(err, creel.ErrAttemptNotFound) {
		t.Errorf("a heartbeat after the end is answered %v", err)
	}
}

func TestAnUnmanagedAMThatKeepsContainersComesBack(t *testing.T) {
	c := start(t, config())
	c.nodes(1, nil)
	ctx := t.Context()
	_, amrm := c.launchUnmanaged("bob", func(s *pb.ApplicationSubmissionContextProto) {
		s.KeepContainersAcrossApplicationAttempts = new(true)
	})
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 2)}))
	if len(a.GetAllocatedContainers()) != 2 {
		t.Fatalf("asked for 2: %v", a)
	}
	r := must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	if len(r.GetContainersFromPreviousAttempts()) != 2 || len(r.GetNmTokensFromPreviousAttempts()) != 1 {
		t.Errorf("registered again: %v", r)
	}
	// The numbers go on beyond those from before: a call from then that is late is none from now.
	if a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0))})); a.GetResponseId() != 3 {
		t.Errorf("the response id after registering again: %d", a.GetResponseId())
	}
}

func TestKilledAtEachStage(t *testing.T) {
	kill := func(c *cluster, id creel.ApplicationID) {
		c.until("the kill is complete", func() bool {
			return must(
				c.as("bob").
					ForceKillApplication(c.t.Context(), &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id), Diagnostics: new("enough")}),
			).GetIsKillCompleted()
		})
		r := c.untilState("bob", id, pb.YarnApplicationStateProto_KILLED)
		if r.GetFinalApplicationStatus() != pb.FinalApplicationStatusProto_APP_KILLED {
			c.t.Errorf("killed: %v", r)
		}
	}
	cfg := config()
	cfg.Dir = t.TempDir()
	c := start(t, cfg)
	ctx := t.Context()

	t.Run("waiting for its first node", func(t *testing.T) {
		kill(c, c.submission("bob", nil))
	})
	ams := make(chan *startedAM, 8)
	c.nodesHook(ams)
	t.Run("launched and not registered", func(t *testing.T) {
		id := c.submission("bob", nil)
		m := <-ams
		kill(c, id)
		<-m.gone
	})
	t.Run("running with containers", func(t *testing.T) {
		id := c.submission("bob", nil)
		m := <-ams
		am := c.amClient(m.token)
		must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
		must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 3)}))
		kill(c, id)
		<-m.gone
		if _, err := am.Allocate(
			ctx,
			&pb.AllocateRequestProto{ResponseId: new(int32(1))},
		); !errors.Is(err, creel.ErrAttemptNotFound) &&
			!errors.Is(err, creel.ErrInvalidToken) {
			t.Errorf("a killed attempt allocates: %v", err)
		}
	})
	t.Run("unmanaged", func(t *testing.T) {
		id, _ := c.launchUnmanaged("bob", nil)
		kill(c, id)
	})
	t.Run("twice", func(t *testing.T) {
		id := c.submission("bob", nil)
		<-ams
		kill(c, id)
		kill(c, id)
	})
}

func TestAnAMThatDiesIsStartedAgain(t *testing.T) {
	c := start(t, config())
	ams := make(chan *startedAM, 8)
	c.nodesHook(ams)
	id := c.submission("bob", func(s *pb.ApplicationSubmissionContextProto) { s.MaxAppAttempts = new(int32(2)) })
	first := <-ams
	first.exit(7, "first try")
	second := <-ams
	if second.Container.Attempt != (creel.AttemptID{Application: id, Attempt: 2}) {
		t.Fatalf("after a failure %v was started", second.Container)
	}
	if _, err := c.amClient(first.token).
		RegisterApplicationMaster(t.Context(), &pb.RegisterApplicationMasterRequestProto{}); err == nil {
		t.Error("the first attempt may still register")
	}
	second.exit(8, "second try")
	r := c.untilState("bob", id, pb.YarnApplicationStateProto_FAILED)
	if r.GetFinalApplicationStatus() != pb.FinalApplicationStatusProto_APP_FAILED {
		t.Errorf("failed twice: %v", r)
	}
	attempts := must(
		c.as("bob").
			GetApplicationAttempts(t.Context(), &pb.GetApplicationAttemptsRequestProto{ApplicationId: pb.FromApplicationID(id)}),
	).GetApplicationAttempts()
	if len(attempts) != 2 {
		t.Errorf("attempts: %v", attempts)
	}
}

// A proxy gave its UAM back, and its AM needs this member again.
func TestEndedUnmanagedAMRestarts(t *testing.T) {
	cfg := config()
	cfg.Dir = t.TempDir()
	c := start(t, cfg)
	c.nodes(1, nil)
	ctx := t.Context()
	id, amrm := c.launchUnmanaged("bob", nil)
	first := c.amClient(amrm)
	must(first.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	must(first.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
		FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
	}))
	ended := c.untilState("bob", id, pb.YarnApplicationStateProto_FINISHED)
	s := &pb.ApplicationSubmissionContextProto{
		ApplicationId: pb.FromApplicationID(id), ApplicationName: new("again"), Queue: new("default"),
	}
	unmanaged(s)
	pb.BeginAfter(s, ended.GetCurrentApplicationAttemptId().GetAttemptId())
	must(c.as("bob").SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: s}))
	var fresh token.Token
	c.until("it has a token of its second attempt", func() bool {
		r := c.report("bob", id)
		fresh = token.FromProto(r.GetAmRmToken())
		return r.GetCurrentApplicationAttemptId().GetAttemptId() == 2 && len(fresh.Identifier) > 0
	})
	second := c.amClient(fresh)
	must(second.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	a := must(second.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 1)}))
	if len(a.GetAllocatedContainers()) != 1 || len(a.GetNmTokens()) != 1 {
		t.Fatalf("the second attempt asked for one container: %v", a)
	}
	if got := pb.ToContainerID(a.GetAllocatedContainers()[0].GetId()).Attempt.Attempt; got != 2 {
		t.Errorf("its container is one of attempt %d", got)
	}
	if _, err := first.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0))}); err == nil {
		t.Error("the first attempt's token is still good")
	}
}
