// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// What the ResourceManager adds to an AM's environment.
const (
	envProxyBase  = "APPLICATION_WEB_PROXY_BASE"
	envSubmitTime = "APP_SUBMIT_TIME_ENV"
)

// launcher starts and stops AMs on their nodes, a bounded number at a time.
// What waits is at most one start and one stop for each live attempt.
type launcher struct {
	s      *Server
	client *hrpc.Client

	mu    sync.Mutex
	queue []func(context.Context)
	wake  chan struct{}
}

func newLauncher(s *Server) *launcher {
	return &launcher{
		s:    s,
		wake: make(chan struct{}, s.cfg.LaunchThreads),
		client: hrpc.NewClient(
			hrpc.ClientConfig{
				KindOf:      yarnrpc.KindOf,
				Logger:      s.log,
				ConnectTime: 10 * time.Second,
				IdleTime:    time.Second,
			},
		),
	}
}

func (l *launcher) add(job func(context.Context)) {
	l.mu.Lock()
	l.queue = append(l.queue, job)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *launcher) next() func(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	job := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return job
}

func (l *launcher) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range l.s.cfg.LaunchThreads {
		workers.Go(func() {
			for {
				for job := l.next(); job != nil && ctx.Err() == nil; job = l.next() {
					job(ctx)
				}
				select {
				case <-l.wake:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
	_ = l.client.Close()
}

// launchAM makes an attempt's token valid and, unless the AM is unmanaged, has it
// started.
func (s *Server) launchAM(a rm.LaunchAM) {
	s.secrets.addAttempt(a.Attempt)
	if a.Unmanaged {
		return
	}
	s.launcher.add(func(ctx context.Context) {
		err := s.launcher.start(ctx, a)
		if ctx.Err() != nil {
			return // the ResourceManager sees to it when it starts again
		}
		s.metrics.Launches.Add(1)
		if err != nil {
			s.metrics.LaunchFailures.Add(1)
			s.log.Warn(
				"AM was not started",
				"attempt",
				a.Attempt.String(),
				"node",
				a.Container.Node.String(),
				"error",
				err,
			)
		}
		s.box.postAlways(func(m *rm.Machine, now time.Time) func() {
			if err != nil {
				m.AMLaunchFailed(
					now,
					a.Attempt,
					"Error launching "+a.Attempt.String()+". Got exception: "+err.Error(),
				)
			} else {
				m.AMLaunched(now, a.Attempt)
			}
			return nil
		})
	})
}

// start tries to start an AM until it is accepted, refused, unwanted, or the
// time is over.
func (l *launcher) start(ctx context.Context, a rm.LaunchAM) error {
	request, err := l.request(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.s.cfg.LaunchTime)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		if !l.s.secrets.alive(a.Attempt) {
			return fmt.Errorf("the attempt is over")
		}
		answer, err := l.node(a.Attempt, a.Container.Node).StartContainers(ctx, request)
		switch {
		case err == nil:
			return refusal(answer, a.Container.ID)
		case !errors.Is(err, creel.ErrUnavailable) && !errors.Is(err, creel.ErrBusy):
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// refusal returns the node's reason not to start the one container asked for, if
// any. That it runs already is none: the answer to an earlier call was lost.
func refusal(answer *pb.StartContainersResponseProto, id creel.ContainerID) error {
	for _, f := range answer.GetFailedRequests() {
		if pb.ToContainerID(f.GetContainerId()) == id &&
			!strings.Contains(f.GetException().GetMessage(), "already is running on this node") {
			return yarnrpc.FromSerialized(f.GetException())
		}
	}
	return nil
}

// node is a NodeManager as an attempt may speak to it.
func (l *launcher) node(a creel.AttemptID, node creel.NodeID) yarnrpc.ContainerManagementProtocolClient {
	t, finish := l.s.Mint(a.Application)
	nm := t.NM(a, node)
	finish()
	return yarnrpc.NewContainerManagementProtocolClient(l.client, node.String(), hrpc.Login{
		User: a.String(),
		Credential: &hrpc.Credential{
			Identifier: nm.Identifier,
			Password:   nm.Password,
			Kind:       nm.Kind,
			Service:    nm.Service,
		},
	})
}

// request is the AM's launch context as the client sent it, with its token
// and two variables added.
func (l *launcher) request(a rm.LaunchAM) (*pb.StartContainersRequestProto, error) {
	c := codec.ContextOf(a.Context)
	if c == nil {
		return nil, fmt.Errorf("%s has no submission context", a.Attempt)
	}
	spec := c.GetAmContainerSpec().CloneVT()
	var credentials token.Credentials
	if len(spec.GetTokens()) > 0 {
		var err error
		if credentials, err = token.ParseCredentials(spec.GetTokens()); err != nil {
			return nil, err
		}
	}
	spec.Tokens = credentials.With("", l.s.secrets.amrmToken(a.Attempt)).Append(nil)
	spec.Environment = setEnv(spec.Environment, envProxyBase, "/proxy/"+a.Attempt.Application.String())
	spec.Environment = setEnv(spec.Environment, envSubmitTime, strconv.FormatInt(codec.Millis(a.Submitted), 10))
	grant := a.Container
	grant.AM = true
	t, finish := l.s.Mint(a.Attempt.Application)
	defer finish()
	return &pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{{
		ContainerLaunchContext: spec, ContainerToken: t.Container(&grant).Proto(),
	}}}, nil
}

func setEnv(env []*pb.StringStringMapProto, key, value string) []*pb.StringStringMapProto {
	for _, e := range env {
		if e.GetKey() == key {
			e.Value = &value
			return env
		}
	}
	return append(env, &pb.StringStringMapProto{Key: &key, Value: &value})
}

// stop ends an AM's container. That it is gone already is no failure, and
// neither is a node that does not answer: its next heartbeat is told to clean up.
func (l *launcher) stop(a rm.StopAM) {
	l.add(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		answer, err := l.node(a.Attempt, a.Node).
			StopContainers(ctx, &pb.StopContainersRequestProto{ContainerId: []*pb.ContainerIdProto{pb.FromContainerID(a.Container)}})
		for _, f := range answer.GetFailedRequests() {
			if !strings.Contains(f.GetException().GetMessage(), "is not handled by this NodeManager") {
				err = yarnrpc.FromSerialized(f.GetException())
			}
		}
		if err != nil {
			l.s.log.Debug(
				"AM was not stopped",
				"attempt",
				a.Attempt.String(),
				"node",
				a.Node.String(),
				"error",
				err,
			)
		}
	})
}

// alive reports whether an attempt's tokens are valid.
func (s *secrets) alive(id creel.AttemptID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.attempts[id]
}
