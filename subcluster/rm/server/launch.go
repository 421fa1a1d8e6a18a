// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// launcher starts and stops AMs on their nodes, a limited number at a time. At most one start and one stop wait for
// each live attempt.
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

// launchAM starts an attempt's AM, unless it is unmanaged.
func (s *Server) launchAM(a rm.LaunchAM) {
	if a.Unmanaged {
		return
	}
	s.launcher.add(func(ctx context.Context) {
		err := s.launcher.start(ctx, a)
		if ctx.Err() != nil {
			return // the ResourceManager resumes it after its restart
		}
		s.metrics.Launches.Add(1)
		if err == nil {
			s.traces.reached(a.Attempt.Application, stageLaunch)
		}
		if err != nil {
			s.metrics.LaunchFailures.Add(1)
			s.log.Warn(
				"failed to start AM",
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

// start tries to start an AM until the node accepts or rejects it, the attempt has ended, or time runs out.
func (l *launcher) start(ctx context.Context, a rm.LaunchAM) error {
	t, finish := l.s.Mint(a.Attempt.Application)
	request, err := codec.StartAM(&a, t, l.s.secrets.amrmToken(a.Attempt))
	finish()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.s.cfg.LaunchTime)
	defer cancel()
	for launch := (turn.Launch{Until: time.Now().Add(l.s.cfg.LaunchTime)}); ; {
		if !l.s.secrets.alive(a.Attempt) {
			return turn.ErrAttemptOver
		}
		answer, err := l.node(a.Attempt, a.Container.Node).StartContainers(ctx, request)
		if err == nil {
			return refusal(answer, a.Container.ID)
		}
		pause, again := launch.Again(time.Now(), err)
		if !again {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// refusal returns the node's reason for not starting the requested container, if any.
func refusal(answer *pb.StartContainersResponseProto, id creel.ContainerID) error {
	if e := codec.StartRefusal(answer, id); e != nil {
		return yarnrpc.FromSerialized(e)
	}
	return nil
}

// node returns a client of a NodeManager with an attempt's token.
func (l *launcher) node(a creel.AttemptID, node creel.NodeID) yarnrpc.ContainerManagementProtocolClient {
	t, finish := l.s.Mint(a.Application)
	nm := t.NM(a, node)
	finish()
	var protections []hrpc.Protection
	if secure := l.s.cfg.Secure; secure != nil {
		protections = secure.Protections
	}
	return yarnrpc.NewContainerManagementProtocolClient(l.client, node.String(), hrpc.Login{
		User: a.String(),
		Credential: &hrpc.Credential{
			Identifier: nm.Identifier,
			Password:   nm.Password,
			Kind:       nm.Kind,
			Service:    nm.Service,

			Protections: protections,
		},
	})
}

// stop ends an AM's container. It is no error if the container has ended. Nor is an unresponsive node: the response
// to its next heartbeat orders the clean-up.
func (l *launcher) stop(a rm.StopAM) {
	l.add(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		answer, err := l.node(a.Attempt, a.Node).
			StopContainers(
				ctx,
				&pb.StopContainersRequestProto{ContainerId: []*pb.ContainerIdProto{pb.FromContainerID(a.Container)}},
			)
		for _, f := range answer.GetFailedRequests() {
			if !strings.Contains(f.GetException().GetMessage(), "is not handled by this NodeManager") {
				err = yarnrpc.FromSerialized(f.GetException())
			}
		}
		if err != nil {
			l.s.log.Debug(
				"failed to stop AM",
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
