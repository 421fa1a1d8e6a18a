// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/subcluster"
)

// addEvents adds the task that records events. The channel is closed when the daemon stops.
func addEvents(s *daemon.Service, recorder *events.Recorder) <-chan struct{} {
	stop := make(chan struct{})
	s.Add("events", func(ctx context.Context) error {
		context.AfterFunc(ctx, func() { close(stop) })
		return recorder.Run(ctx)
	})
	return stop
}

// memberEvents records the members' changes of state. All routers see them; the first one to report records.
type memberEvents struct {
	view     func() *subcluster.View
	recorder *events.Recorder
	last     map[creel.SubclusterID]memberSeen
}

// memberSeen is a member in an earlier view.
type memberSeen struct {
	epoch int64
	state subcluster.State
}

// memberEvery is the time between two looks at the view.
const memberEvery = time.Second

func (m *memberEvents) run(ctx context.Context) error {
	tick := time.NewTicker(memberEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.compare(ctx, m.view())
		}
	}
}

// compare records the differences from the view before. A view that does not trust the store has none.
func (m *memberEvents) compare(ctx context.Context, view *subcluster.View) {
	if view == nil || view.Freeze != nil {
		return
	}
	now := map[creel.SubclusterID]memberSeen{}
	for i := range view.Members {
		s := &view.Members[i]
		is := memberSeen{s.Epoch, s.State}
		was, known := m.last[s.ID]
		now[s.ID] = is
		if m.last == nil || was == is {
			continue
		}
		e := statestore.Event{
			Kind: statestore.EventMember, Subject: string(s.ID), After: s.State.String(), Detail: s.Reason,
		}
		switch {
		case !known || was.epoch != is.epoch && s.State.Alive():
			e.After = "joined"
			e.Key = fmt.Sprintf("member %s joined %d", s.ID, s.Epoch)
		default:
			// Silence has one start for all routers; they may see an end of it at different moments.
			at := view.At.Add(-s.Age).Truncate(time.Minute)
			e.Key = fmt.Sprintf("member %s %s %d %d", s.ID, s.State, s.Epoch, at.Unix())
		}
		if known {
			e.Before = was.state.String()
		}
		m.recorder.Record(ctx, e)
	}
	m.last = now
}
