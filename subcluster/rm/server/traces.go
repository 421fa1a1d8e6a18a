// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// These are the stages of an application in its trace; each starts at the end of the previous one.
const (
	stageJournal   = "journal"         // its submission is durable
	stageContainer = "AM container"    // its AM has a container
	stageLaunch    = "launch AM"       // the node has accepted it
	stageRegister  = "register AM"     // the AM has registered
	stageAsk       = "first ask"       // it asks for containers
	stageGrant     = "first grant"     // and has got a container
	stageRuns      = "first container" // which its node reports as running
	stageEnd       = "end"
)

// mostTraced limits the applications traced at a time.
const mostTraced = 10_000

// traces records the stages of applications whose submission was sampled. Without any, a heartbeat costs one atomic
// read.
type traces struct {
	provider trace.TracerProvider // nil: spans are not collected
	some     atomic.Int64         // traced applications

	mu   sync.Mutex
	apps map[creel.ApplicationID]*tracedApp
}

type tracedApp struct {
	*telemetry.Stages
	am atomic.Pointer[creel.ContainerID] // its AM's container, nil before it has one
}

// KeepTrace writes the span of a submission into the submission, so that the journal stores it.
func (s *Server) KeepTrace(ctx context.Context, c *pb.ApplicationSubmissionContextProto) {
	if s.traces.provider != nil && c != nil {
		yarnrpc.SetTrace(c, telemetry.Kept(ctx))
	}
}

// begin starts to trace an application that has a stored span.
func (t *traces) begin(id creel.ApplicationID, c *pb.ApplicationSubmissionContextProto, skip ...string) {
	if t.provider == nil || t.some.Load() >= mostTraced {
		return
	}
	stages := telemetry.NewStages(t.provider, yarnrpc.TraceOf(c), time.Now(),
		attribute.String("creel.application", id.String()))
	if stages == nil {
		return
	}
	stages.Skip(skip...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.apps == nil {
		t.apps = map[creel.ApplicationID]*tracedApp{}
	}
	if t.apps[id] == nil {
		t.some.Add(1)
	}
	t.apps[id] = &tracedApp{Stages: stages}
}

// resume traces again the applications that were traced before a restart. The next call of their AMs is not the first
// one.
func (t *traces) resume(m *rm.Machine) {
	if t.provider == nil {
		return
	}
	for a := range m.Apps {
		switch {
		case a.State.Ended():
		case a.Launched.IsZero():
			t.begin(a.ID, codec.ContextOf(a.Context), stageJournal)
		default:
			t.begin(a.ID, codec.ContextOf(a.Context), stageJournal, stageContainer, stageLaunch, stageRegister,
				stageAsk, stageGrant, stageRuns)
		}
	}
}

func (t *traces) of(id creel.ApplicationID) *tracedApp {
	if t.some.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.apps[id]
}

// reached ends a stage of a traced application.
func (t *traces) reached(id creel.ApplicationID, stage string, attrs ...attribute.KeyValue) {
	if a := t.of(id); a != nil {
		a.Reached(stage, attrs...)
	}
}

func (t *traces) launching(a rm.LaunchAM) {
	if app := t.of(a.Attempt.Application); app != nil {
		app.Reached(stageJournal) // the waiting caller is answered a moment later
		if a.Unmanaged {
			return // an unmanaged AM has no container
		}
		id := a.Container.ID
		app.am.Store(&id)
		app.Reached(stageContainer, attribute.String("creel.container", a.Container.ID.String()),
			attribute.String("creel.node", a.Container.Node.String()))
	}
}

// registered: an AM that calls has been launched, even if its node's answer is still on its way.
func (t *traces) registered(id creel.ApplicationID) {
	app := t.of(id)
	if app == nil {
		return
	}
	if app.am.Load() != nil {
		app.Reached(stageLaunch)
	}
	app.Reached(stageRegister)
}

// allocated records an AM's asks and grants.
func (t *traces) allocated(attempt creel.AttemptID, r *rm.AllocateRequest, a *rm.Answer) {
	app := t.of(attempt.Application)
	if app == nil {
		return
	}
	if len(r.Asks)+len(r.Scheduling) > 0 {
		app.Reached(stageAsk)
	}
	if len(a.Granted) > 0 {
		app.Reached(stageGrant, attribute.String("creel.container", a.Granted[0].ID.String()))
	}
}

// reported looks for the first container that an application runs besides its AM.
func (t *traces) reported(r *rm.NodeReport) {
	if t.some.Load() == 0 {
		return
	}
	for i := range r.Containers {
		c := &r.Containers[i]
		app := t.of(c.ID.Attempt.Application)
		if app == nil || c.State == creel.ContainerNew {
			continue
		}
		if am := app.am.Load(); am != nil && *am == c.ID {
			continue
		}
		app.Reached(stageRuns, attribute.String("creel.container", c.ID.String()),
			attribute.String("creel.node", r.ID.String()))
	}
}

func (t *traces) ended(id creel.ApplicationID) {
	app := t.of(id)
	if app == nil {
		return
	}
	app.Reached(stageEnd)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.apps[id]; ok {
		delete(t.apps, id)
		t.some.Add(-1)
	}
}
