// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/moves"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// moveLease is the lease of the router that moves applications.
const moveLease = 10 * time.Second

// moveTerms reads the limits for moves from the settings.
func moveTerms(s *settings.Settings) rebalancer.MoveTerms {
	return rebalancer.MoveTerms{
		Loaded:       s.Bool("creel.rebalancer.move.loaded"),
		PerMinute:    s.Int("creel.rebalancer.move.per-minute"),
		QueuePercent: s.Float("creel.rebalancer.move.queue-percent"),
		DeadBand:     s.Float("creel.rebalancer.move.dead-band") / 100,
		Again:        s.Duration("creel.rebalancer.move.again-after"),
	}
}

// mover moves waiting applications between members.
type mover struct {
	store statestore.Store
	homes router.Homes // the store's, without caches
	pool  *remote.Pool
	view  func() *subcluster.View
	// policy returns a queue's policy in a view.
	policy   func(*subcluster.View, creel.QueuePath) policies.Policy
	terms    rebalancer.MoveTerms
	name     string
	log      *slog.Logger
	recorder *events.Recorder
	over     [2]atomic.Int64 // completed moves, and abandoned ones
}

// addMoves adds the loop of a router that moves waiting applications.
func (r *Router) addMoves(m *mover) {
	loop := moves.New(moves.Config[*yarnrpc.MovedApplication]{
		Store: m.store, View: m.view, Mover: m.steps(r.Server), Lead: m.lead, Choose: m.choose, Held: m.held,
		Over: m.count, Recording: m.recording, Log: m.log,
	})
	r.Add("moves", loop.Run)
	for i, result := range []string{"moved", "stays"} {
		r.Health.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "creel_router_moves_total",
			Help:        "Waiting applications that this router moved to another subcluster, or that it let stay.",
			ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(m.over[i].Load()) }))
	}
}

// recording attaches the event of a finished move.
func (m *mover) recording(ctx context.Context, d moves.FinishedMove) context.Context {
	e := statestore.Event{
		Kind: statestore.EventMove, Subject: d.Application.String(), Before: string(d.From), After: string(d.To),
		Detail: d.Why,
	}
	if d.By != moves.ByRebalancer {
		e.User = d.By
	}
	if !d.Moved {
		e.Result, e.Detail = statestore.EventFailed, d.Because
	}
	return m.recorder.Recording(ctx, e)
}

func (m *mover) count(d moves.FinishedMove) {
	if d.Moved {
		m.over[0].Add(1)
	} else {
		m.over[1].Add(1)
	}
}

// member returns the client of a member in the view.
func (m *mover) member(id creel.SubclusterID) (*remote.Member, error) {
	status, ok := m.view().Member(id)
	if !ok {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable, What: fmt.Sprintf("subcluster %s is not in the view", id),
			Try: "see `creel subcluster list`",
		}
	}
	return m.pool.Member(status), nil
}

// at makes a call to a member in the view.
func at[T any](m *mover, id creel.SubclusterID, call func(client.Member) (T, error)) (answer T, err error) {
	to, err := m.member(id)
	if err != nil {
		return answer, err
	}
	return call(client.Of(to))
}

// steps returns the calls of a move.
func (m *mover) steps(s *server.Server) router.Mover[*yarnrpc.MovedApplication] {
	type held = *yarnrpc.MovedApplication
	return router.Mover[held]{
		Homes: m.homes,
		Disown: func(
			ctx context.Context, id creel.SubclusterID, app creel.ApplicationID, claim int64,
		) (router.Standing, error) {
			return at(m, id, func(to client.Member) (router.Standing, error) { return to.Disown(ctx, app, claim) })
		},
		Hold: func(
			ctx context.Context, id creel.SubclusterID, app creel.ApplicationID, claim int64, why string,
		) (held, error) {
			return at(m, id, func(from client.Member) (held, error) { return from.Hold(ctx, app, claim, why) })
		},
		Release: func(ctx context.Context, id creel.SubclusterID, app creel.ApplicationID, claim int64) error {
			_, err := at(m, id, func(from client.Member) (held, error) { return nil, from.Release(ctx, app, claim) })
			return err
		},
		Drop: func(ctx context.Context, id creel.SubclusterID, app creel.ApplicationID, claim int64) error {
			_, err := at(m, id, func(from client.Member) (held, error) { return nil, from.Drop(ctx, app, claim) })
			return err
		},
		Submit: func(
			ctx context.Context, id creel.SubclusterID, app creel.ApplicationID, moved held, claim int64,
		) (router.Verdict, error) {
			to, err := m.member(id)
			if err != nil {
				return router.NotSent, err
			}
			err = client.Of(to).SubmitCarried(ctx, moved, claim)
			if err == nil {
				s.Forget(app)
			}
			return server.VerdictOf(err), err
		},
		Now: time.Now,
	}
}

// lead acquires the lease under which one router at a time moves applications.
func (m *mover) lead(ctx context.Context) (_ context.Context, done func(), ok bool) {
	return m.leadAs(ctx, "moves", moveLease)
}

// leadAs acquires a lease and renews it until the work under it is done. The context ends if another process has the
// lease, or if it could not be renewed before it expired. A process that was paused for longer may continue briefly:
// the store rejects writes under a lease that another process has taken.
func (m *mover) leadAs(
	ctx context.Context,
	name string,
	ttl time.Duration,
) (_ context.Context, done func(), ok bool) {
	until := time.Now().Add(ttl)
	lease, err := m.store.Acquire(ctx, name, m.name, ttl)
	if err != nil {
		return nil, nil, false // another process leads, or the store is away
	}
	under, cancel := context.WithCancel(statestore.Under(ctx, lease))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		m.renew(under, lease, until, ttl)
	}()
	return under, func() {
		cancel()
		<-ended
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = m.store.Release(bye, lease) // else it expires
	}, true
}

// renew renews a lease that lasts until then, and returns when it is lost.
func (m *mover) renew(ctx context.Context, lease statestore.Lease, until time.Time, ttl time.Duration) {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		limit, cancel := context.WithDeadline(ctx, until)
		_, err := m.store.Renew(limit, lease, ttl)
		cancel()
		switch {
		case err == nil:
			until = now.Add(ttl)
		case errors.Is(err, creel.ErrStale) || !time.Now().Before(until):
			return
		}
	}
}

func (m *mover) held(ctx context.Context, s *subcluster.Status) ([]moves.Hold, error) {
	list, err := client.Of(m.pool.Member(s)).Waiting(ctx)
	var out []moves.Hold
	for _, w := range list {
		if w.Held > 0 {
			out = append(out, moves.Hold{Application: w.Application, Claim: w.Held})
		}
	}
	return out, err
}

func (m *mover) choose(ctx context.Context, s moves.Situation) ([]moves.Record, error) {
	chosen, _, err := m.chosen(ctx, s, "")
	var out []moves.Record
	for _, c := range chosen {
		by := moves.ByRebalancer
		if member, ok := s.View.Member(c.From); ok {
			if d := operator.DrainOf(s.View, member); d != nil {
				by = d.By
			}
		}
		out = append(out, moves.Record{
			HomeMove: router.HomeMove{Application: c.Application, From: c.From, To: c.To, Why: c.Why},
			Queue:    c.Queue, By: by,
		})
	}
	return out, err
}

// chosen returns the moves that would be made now; if a member is named, as if it were drained by moves.
func (m *mover) chosen(
	ctx context.Context,
	s moves.Situation,
	as creel.SubclusterID,
) ([]rebalancer.ChosenMove, []string, error) {
	in := rebalancer.MoveInput{View: s.View, Now: s.Now, Drained: map[creel.SubclusterID]string{}}
	var notes []string
	for i := range s.View.Members {
		status := &s.View.Members[i]
		switch d := operator.DrainOf(s.View, status); {
		case d != nil && d.Mode == operator.Move:
			in.Drained[status.ID] = fmt.Sprintf("%s is drained%s", status.ID, byWhom(d))
		case status.ID == as:
			in.Drained[status.ID] = fmt.Sprintf("%s is drained", status.ID)
		}
		_, drained := in.Drained[status.ID]
		if !status.State.Alive() || status.Load.Metrics.AppsPending+status.Load.Metrics.AppsRunning == 0 ||
			!drained && !m.terms.Loaded {
			continue
		}
		list, err := client.Of(m.pool.Member(status)).Waiting(ctx)
		if err != nil {
			notes = append(notes, fmt.Sprintf("failed to list the waiting applications of %s: %v", status.ID, err))
			continue
		}
		for _, w := range list {
			in.Waiting = append(in.Waiting, rebalancer.WaitingApplication{
				Application: w.Application, Home: status.ID, Queue: w.Queue, Submitted: w.Submitted,
				Label: w.Label,
			})
		}
	}
	if len(in.Waiting) == 0 {
		return nil, notes, nil
	}
	in.Past = past(s)
	in.Excludes = func(q creel.QueuePath, id creel.SubclusterID) bool {
		return m.policy(s.View, q).Excludes(s.View, id)
	}
	terms := m.terms
	if terms.Loaded {
		var err error
		if in.Optout, terms.Loaded, err = m.allowed(ctx); err != nil {
			return nil, nil, err
		}
	}
	chosen, more := rebalancer.ChooseMoves(&in, terms)
	return chosen, append(notes, more...), nil
}

func byWhom(d *operator.DrainProgress) string {
	text := ""
	if d.By != "" {
		text = " by " + d.By
	}
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	return text
}

func past(s moves.Situation) (out []rebalancer.PastMove) {
	for _, x := range s.Moves {
		out = append(out, rebalancer.PastMove{
			Application: x.Application, From: x.From, To: x.To, Queue: x.Queue, At: x.Asked, Under: true,
		})
	}
	for _, x := range s.Last {
		out = append(out, rebalancer.PastMove{
			Application: x.Application, From: x.From, To: x.To, Queue: x.Queue, At: x.At,
		})
	}
	return out
}

// allowed returns the queues that have opted out, and whether plans are paused, which also pauses moves out of loaded
// members.
func (m *mover) allowed(ctx context.Context) (optout func(creel.QueuePath) bool, may bool, err error) {
	control, err := m.store.Documents(ctx, rebalancer.ControlClass)
	if err != nil {
		return nil, false, err
	}
	if _, paused := control.Find(rebalancer.PauseName); paused {
		return nil, false, nil
	}
	set, err := m.store.Documents(ctx, rebalancer.TreeClass)
	if err != nil {
		return nil, false, err
	}
	d, ok := set.Find(rebalancer.TreeName)
	if !ok {
		return nil, true, nil
	}
	tree, err := rebalancer.ParseTree(d.Data, d.Version)
	if err != nil {
		return nil, false, err
	}
	return func(q creel.QueuePath) bool {
		x := tree.Find(q)
		return x != nil && x.Optout
	}, true, nil
}

// preview implements operator.Config's preview.
func (m *mover) preview(ctx context.Context, as creel.SubclusterID) ([]rebalancer.ChosenMove, []string, error) {
	view := m.view()
	if view == nil {
		return nil, nil, &creel.Error{
			Kind: creel.ErrUnavailable, What: "the moves are unknown",
			Why: "this router has not read the state store yet", Try: "again in a moment",
		}
	}
	s := moves.Situation{View: view}
	var err error
	if s.Moves, s.Now, err = moves.All(ctx, m.store); err != nil {
		return nil, nil, err
	}
	if s.Last, err = moves.Last(ctx, m.store); err != nil {
		return nil, nil, err
	}
	return m.chosen(ctx, s, as)
}

// elsewhere returns the members that may have an application that its home does not know. These are the current home,
// read without caches, and the two members of a move.
func (m *mover) elsewhere(
	ctx context.Context,
	app creel.ApplicationID,
) (out []creel.SubclusterID, moving bool, err error) {
	home, err := m.store.Home(ctx, app)
	if err != nil && !errors.Is(err, creel.ErrApplicationNotFound) {
		return nil, false, err
	}
	if err == nil {
		out = append(out, home)
	}
	r, moving, err := moves.Of(ctx, m.store, app)
	if moving && !r.Unreadable {
		for _, id := range []creel.SubclusterID{r.To, r.From} {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out, moving, err
}
