// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
	"github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// The test binary plays the ResourceManager that is killed when it is started
// with a configuration in the environment.
const childEnv = "CREEL_TEST_RM"

type childConfig struct {
	Dir string
	At  server.Addresses
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	verify(m)
}

func child(text string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	cfg := config()
	cfg.Dir = c.Dir
	if c.At.Client != "" {
		cfg.rpc.Client, cfg.rpc.Scheduler, cfg.rpc.Tracker, cfg.rpc.Admin = c.At.Client, c.At.Scheduler, c.At.Tracker, c.At.Admin
	}
	s, ports, err := rpc.Open(cfg.Config, cfg.rpc)
	if err != nil {
		return err
	}
	go func() {
		<-s.Ready()
		line, _ := json.Marshal(s.Addresses())
		fmt.Println(string(line))
	}()
	return s.Run(context.Background(), ports.Run)
}

// mortal is a ResourceManager in a process of its own.
type mortal struct {
	t   *testing.T
	cfg childConfig
	cmd *exec.Cmd
	c   *hrpc.Client
}

func (m *mortal) start() {
	m.t.Helper()
	text := must(json.Marshal(m.cfg))
	m.cmd = exec.Command(must(os.Executable()))
	m.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	m.cmd.Stderr = os.Stderr
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out := must(m.cmd.StdoutPipe())
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m.cfg.At)
	}
	if err != nil {
		m.t.Fatalf("the ResourceManager did not start: %v", err)
	}
}

func (m *mortal) kill() {
	m.t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	_ = m.cmd.Wait() // killed, as intended
}

// again calls until the ResourceManager is back.
func again[T any](m *mortal, call func() (T, error)) (T, error) {
	for {
		t, err := call()
		var transport *hrpc.TransportError
		if !errors.As(err, &transport) && !errors.Is(err, creel.ErrUnavailable) {
			return t, err
		}
		if m.t.Context().Err() != nil {
			m.t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestKilledInTheMiddleNothingIsLost(t *testing.T) {
	m := &mortal{t: t, cfg: childConfig{Dir: t.TempDir()}, c: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})}
	t.Cleanup(func() { m.c.Close() })
	m.start()
	t.Cleanup(func() { m.kill() })
	ctx := t.Context()
	ams := make(chan *startedAM, 8)
	farm, err := nmrpc.New(
		nmrpc.Config{
			Tracker: m.cfg.At.Tracker,
			Nodes:   3,
			Config:  nmserver.Config{Eager: time.Millisecond, RunTime: time.Hour, OnStart: hook(ams)},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(background(t, "nodes", farm.Run))
	<-farm.Ready()

	bob := yarnrpc.NewApplicationClientProtocolClient(m.c, m.cfg.At.Client, hrpc.Login{User: "bob"})
	app := must(bob.GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
	must(
		bob.SubmitApplication(
			ctx,
			&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId:   app,
				ApplicationName: new("survivor"),
				AmContainerSpec: &pb.ContainerLaunchContextProto{},
				Resource:        pb.FromResource(creel.NewResource(256, 1)),
			}},
		),
	)
	started := <-ams
	am := yarnrpc.NewApplicationMasterProtocolClient(m.c, m.cfg.At.Scheduler, login(started.token))
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{Host: new("h")}))
	a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 512, 4)}))
	nodes := map[creel.NodeID]yarnrpc.ContainerManagementProtocolClient{}
	for _, nt := range a.GetNmTokens() {
		nodes[pb.ToNodeID(nt.GetNodeId())] = yarnrpc.NewContainerManagementProtocolClient(
			m.c,
			pb.ToNodeID(nt.GetNodeId()).String(),
			login(token.FromProto(nt.GetToken())),
		)
	}
	granted := a.GetAllocatedContainers()
	for _, ct := range granted {
		must(
			nodes[pb.ToNodeID(ct.GetNodeId())].StartContainers(
				ctx,
				&pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{
					{
						ContainerLaunchContext: &pb.ContainerLaunchContextProto{},
						ContainerToken:         ct.GetContainerToken(),
					},
				}},
			),
		)
	}
	last := a.GetResponseId()

	for epoch := 1; epoch <= 3; epoch++ {
		m.kill()
		m.start()
		// The AM finds out, registers again and goes on.
		_, err := again(m, func() (*pb.AllocateResponseProto, error) {
			return am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &last})
		})
		if !errors.Is(err, creel.ErrNotRegistered) {
			t.Fatalf("epoch %d: the first allocate was answered %v", epoch, err)
		}
		must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{Host: new("h")}))
		last = 0
		// The nodes bring the containers back; none is lost, none is new.
		for {
			list := must(
				bob.GetContainers(
					ctx,
					&pb.GetContainersRequestProto{ApplicationAttemptId: pb.FromAttemptID(started.Container.Attempt)},
				),
			).GetContainers()
			if len(list) == len(granted)+1 {
				break
			}
			if len(list) > len(granted)+1 || ctx.Err() != nil {
				t.Fatalf("epoch %d: %d containers", epoch, len(list))
			}
			time.Sleep(time.Millisecond)
		}
		// New ones carry the epoch of this process.
		var fresh *pb.ContainerProto
		for asked := ask(2, 128, 1); fresh == nil; asked = nil {
			a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &last, Ask: asked}))
			last = a.GetResponseId()
			if len(a.GetCompletedContainerStatuses()) > 0 {
				t.Fatalf("epoch %d: a container ended: %v", epoch, a.GetCompletedContainerStatuses())
			}
			for _, ct := range a.GetAllocatedContainers() {
				fresh = ct
			}
		}
		if got := pb.ToContainerID(fresh.GetId()).Epoch(); got != int64(epoch) {
			t.Errorf("epoch %d: a new container has epoch %d", epoch, got)
		}
		r := must(
			am.Allocate(
				ctx,
				&pb.AllocateRequestProto{ResponseId: &last, Release: []*pb.ContainerIdProto{fresh.GetId()}},
			),
		)
		last = r.GetResponseId()
		if n := len(r.GetCompletedContainerStatuses()); n != 1 {
			t.Errorf("epoch %d: releasing one ended %d", epoch, n)
		}
	}
	select {
	case <-started.gone:
		t.Fatal("the AM was killed on the way")
	default:
	}
	if n := farm.Metrics().Finished.Load(); n != 0 {
		t.Fatalf("%d containers ended on the way", n)
	}
	for {
		done := must(
			am.FinishApplicationMaster(
				ctx,
				&pb.FinishApplicationMasterRequestProto{
					FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
				},
			),
		)
		if done.GetIsUnregistered() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	// A final response stays final in the next epoch.
	m.kill()
	m.start()
	report, err := again(m, func() (*pb.GetApplicationReportResponseProto, error) {
		return bob.GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: app})
	})
	if err != nil || report.GetApplicationReport().GetYarnApplicationState() != pb.YarnApplicationStateProto_FINISHED ||
		report.GetApplicationReport().GetFinalApplicationStatus() != pb.FinalApplicationStatusProto_APP_SUCCEEDED {
		t.Errorf("after the last epoch: %v, %v", report, err)
	}
	// The first response may never have reached the AM: it unregisters again, on another connection, and receives the
	// confirmation. Its application is finished for any other call.
	done, err := again(m, func() (*pb.FinishApplicationMasterResponseProto, error) {
		return am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
			FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
		})
	})
	if err != nil || !done.GetIsUnregistered() {
		t.Errorf("the goodbye, repeated to the last epoch, is answered %v, %v", done, err)
	}
	if _, err := am.RegisterApplicationMaster(ctx,
		&pb.RegisterApplicationMasterRequestProto{Host: new("h")}); !errors.Is(err, creel.ErrAttemptNotFound) {
		t.Errorf("a registration after the end is answered %v", err)
	}
}

// Everything acknowledged before a kill at any moment is there afterwards.
func TestAcknowledgedSubmissionsSurviveAKillAtAnyMoment(t *testing.T) {
	m := &mortal{t: t, cfg: childConfig{Dir: t.TempDir()}, c: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})}
	t.Cleanup(func() { m.c.Close() })
	m.start()
	t.Cleanup(func() { m.kill() })
	ctx := t.Context()
	var acknowledged []*pb.ApplicationIdProto
	for round := range 3 {
		bob := yarnrpc.NewApplicationClientProtocolClient(m.c, m.cfg.At.Client, hrpc.Login{User: "bob"})
		acks := make(chan *pb.ApplicationIdProto, 4096)
		stopped := make(chan struct{})
		for range 8 {
			go func() {
				defer func() { stopped <- struct{}{} }()
				for {
					r, err := bob.GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})
					if err != nil {
						return
					}
					_, err = bob.SubmitApplication(
						ctx,
						&pb.SubmitApplicationRequestProto{
							ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
								ApplicationId:   r.GetApplicationId(),
								AmContainerSpec: &pb.ContainerLaunchContextProto{},
								Resource:        pb.FromResource(creel.NewResource(128, 1)),
							},
						},
					)
					if err != nil {
						return
					}
					acks <- r.GetApplicationId()
				}
			}()
		}
		for range 50 + 37*round {
			acknowledged = append(acknowledged, <-acks)
		}
		m.kill()
		for range 8 {
			<-stopped
		}
		close(acks)
		for id := range acks {
			acknowledged = append(acknowledged, id)
		}
		m.start()
	}
	bob := yarnrpc.NewApplicationClientProtocolClient(m.c, m.cfg.At.Client, hrpc.Login{User: "bob"})
	for _, id := range acknowledged {
		r, err := bob.GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: id})
		if err != nil || r.GetApplicationReport().GetUser() != "bob" {
			t.Fatalf("of %d acknowledged submissions %v is lost: %v", len(acknowledged), pb.ToApplicationID(id), err)
		}
	}
}
