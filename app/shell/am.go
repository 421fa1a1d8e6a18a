// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/load"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/workload"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
)

// heartbeat is the time between allocate calls without changes.
const heartbeat = 200 * time.Millisecond

// AM is the address, identity and environment with which a Spec's AM runs.
type AM struct {
	Client    *hrpc.Client
	Scheduler string // address of ApplicationMasterProtocol: a proxy's, or the ResourceManager's
	Attempt   creel.AttemptID
	Token     token.Token // of the kind AMRMToken
	Simulated bool        // the nodes run no programs
}

// Run runs the command in all its containers and returns when the application has finished. Failed containers cause
// no error: the application's final status and diagnostics report them.
func (s Spec) Run(ctx context.Context, m AM) error {
	job := NewJob(s, m.Simulated)
	launch := s.launch(m.Simulated)
	am := load.AM{
		Client: m.Client, Scheduler: m.Scheduler, Attempt: m.Attempt, Token: m.Token, Play: job, Heartbeat: heartbeat,
		Launch:     func(workload.Start) *pb.ContainerLaunchContextProto { return launch },
		Share:      job.Share,
		NotStarted: job.NotStarted,
	}
	return am.Run(ctx)
}

// FromEnvironment reads the data that a NodeManager passes to an AM: the Spec, the attempt and its token. getenv and
// read are os.Getenv and os.ReadFile.
func FromEnvironment(getenv func(string) string, read func(string) ([]byte, error)) (Spec, AM, error) {
	var m AM
	s, err := Decode(getenv(EnvSpec))
	if err != nil {
		return s, m, err
	}
	container, err := creel.ParseContainerID(getenv("CONTAINER_ID"))
	if err != nil {
		return s, m, fmt.Errorf("CONTAINER_ID: %w; this program is started by a NodeManager, see creel run --help", err)
	}
	m.Attempt = container.Attempt
	b, err := read(getenv("HADOOP_TOKEN_FILE_LOCATION"))
	if err != nil {
		return s, m, fmt.Errorf("the file of tokens, HADOOP_TOKEN_FILE_LOCATION: %w", err)
	}
	credentials, err := token.ParseCredentials(b)
	if err != nil {
		return s, m, fmt.Errorf("the file of tokens: %w", err)
	}
	var ok bool
	if m.Token, ok = credentials.OfKind(token.KindAMRM); !ok {
		return s, m, fmt.Errorf("the file of tokens has no AMRM token")
	}
	m.Scheduler = os.Expand(s.Scheduler, getenv)
	return s, m, nil
}

// NewClient makes the client for AMs' calls.
func NewClient() *hrpc.Client { return hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}) }

// Hook simulates the AMs of `creel run` on simulated nodes. Other containers keep their simulated run time. Close
// ends the running AMs.
type Hook struct {
	scheduler string
	client    *hrpc.Client

	ctx  context.Context
	stop context.CancelFunc
	ams  sync.WaitGroup
}

// NewHook makes a Hook for nodes whose AMs use the scheduler or proxy at an address.
func NewHook(scheduler string) *Hook {
	h := &Hook{scheduler: scheduler, client: NewClient()}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// OnStart takes a container if it is the AM of a Spec.
func (h *Hook) OnStart(c nmserver.Started, exit func(code int32, diagnostic string)) (stop func()) {
	if !c.AM {
		return nil
	}
	text := ""
	for _, e := range c.Launch.GetEnvironment() {
		if e.GetKey() == EnvSpec {
			text = e.GetValue()
		}
	}
	if text == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(h.ctx)
	h.ams.Go(func() {
		defer cancel()
		if err := h.play(ctx, text, c); err != nil {
			exit(1, err.Error())
			return
		}
		exit(0, "")
	})
	return cancel
}

func (h *Hook) play(ctx context.Context, text string, c nmserver.Started) error {
	s, err := Decode(text)
	if err != nil {
		return err
	}
	credentials, err := token.ParseCredentials(c.Launch.GetTokens())
	if err != nil {
		return err
	}
	t, ok := credentials.OfKind(token.KindAMRM)
	if !ok {
		return fmt.Errorf("the launch context has no AMRM token")
	}
	return s.Run(ctx, AM{
		Client: h.client, Scheduler: h.scheduler, Attempt: c.Container.Attempt, Token: t, Simulated: true,
	})
}

// Close ends the AMs and waits for them.
func (h *Hook) Close() error {
	h.stop()
	h.ams.Wait()
	h.client.Close()
	return nil
}
