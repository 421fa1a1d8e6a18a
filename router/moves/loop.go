// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Patience is the time after which a move that has not arrived is abandoned.
const Patience = 5 * time.Minute

// mendEvery is the number of rounds between two checks for holds without a record.
const mendEvery = 15

// Hold is an application on hold in a member's list.
type Hold struct {
	Application creel.ApplicationID
	Claim       int64
}

// Config configures a Loop. All fields but Choose, Lead, Over and Log are required.
type Config[T any] struct {
	Store Store
	View  func() *subcluster.View // nil at first
	Mover router.Mover[T]         // the loop sets its Arrived
	// Lead reports whether this process may work now; done is called at the end of the round. nil: always.
	Lead func(ctx context.Context) (_ context.Context, done func(), ok bool)
	// Choose returns the moves to start now. nil: none.
	Choose func(ctx context.Context, s Situation) ([]Record, error)
	// Held returns a member's applications on hold.
	Held func(ctx context.Context, m *subcluster.Status) ([]Hold, error)
	Over func(FinishedMove) // called with each finished move
	// Recording returns the context of the write that finishes a move, with an event of it. nil: no event.
	Recording func(ctx context.Context, d FinishedMove) context.Context
	Every     time.Duration // between rounds [2 s]
	Log       *slog.Logger  // nil: silent
}

// Situation is the input of Choose.
type Situation struct {
	View  *subcluster.View
	Now   time.Time      // store's clock
	Moves []Record       // under way
	Last  []FinishedMove // newest first
}

// Loop carries moves out. Make one with New, run it with Run.
type Loop[T any] struct {
	cfg    Config[T]
	ask    router.Disown
	rounds int
	seen   map[place]bool                // holds without a record, of the previous check
	gone   statestore.Removals           // read in this round, if needed
	told   map[creel.ApplicationID]int64 // versions of the records already logged as unreadable
}

type place struct {
	app creel.ApplicationID
	at  creel.SubclusterID
}

// New makes a Loop.
func New[T any](cfg Config[T]) *Loop[T] {
	if cfg.Every <= 0 {
		cfg.Every = 2 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l := &Loop[T]{cfg: cfg, ask: cfg.Mover.Disown, seen: map[place]bool{}, told: map[creel.ApplicationID]int64{}}
	l.cfg.Mover.Arrived, l.cfg.Mover.Disown = l.arrived, l.disown
	return l
}

// Run runs until ctx ends, then returns nil.
func (l *Loop[T]) Run(ctx context.Context) error {
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := ""
		if err := l.Round(ctx); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != told && now != "" {
			l.cfg.Log.Warn("failed to move waiting applications", "error", now)
		}
		told = now
	}
}

// Round starts the chosen moves and continues each recorded move as far as possible, oldest first. The error is the
// store's.
func (l *Loop[T]) Round(ctx context.Context) error {
	view := l.cfg.View()
	if view == nil || view.Freeze != nil {
		return nil // no moves without a current view
	}
	if l.cfg.Lead != nil {
		under, done, ok := l.cfg.Lead(ctx)
		if !ok {
			clear(l.seen) // the last check is out of date when this router leads again
			return nil
		}
		defer done()
		ctx = under
	}
	if err := l.begin(ctx, view); err != nil {
		return err
	}
	all, now, err := All(ctx, l.cfg.Store)
	if err != nil {
		return err
	}
	l.rounds++
	mends := l.rounds%mendEvery == 0
	if len(all) > 0 || mends {
		if l.gone, err = statestore.RemovalsIn(ctx, l.cfg.Store); err != nil {
			return err
		}
	}
	l.forget(all)
	for _, r := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.Unreadable {
			l.leave(&r)
		} else if err := l.carry(ctx, view, r, now); err != nil {
			return err
		}
	}
	if mends {
		l.mend(ctx, view, all)
	}
	return nil
}

// begin records the chosen moves.
func (l *Loop[T]) begin(ctx context.Context, view *subcluster.View) error {
	if l.cfg.Choose == nil {
		return nil
	}
	s := Situation{View: view}
	var err error
	if s.Moves, s.Now, err = All(ctx, l.cfg.Store); err != nil {
		return err
	}
	if s.Last, err = Last(ctx, l.cfg.Store); err != nil {
		return err
	}
	chosen, err := l.cfg.Choose(ctx, s)
	if err != nil {
		return err
	}
	for _, r := range chosen {
		if err := Begin(ctx, l.cfg.Store, r); err != nil && !errors.Is(err, creel.ErrConflict) {
			return err
		}
	}
	return nil
}

// leave logs once that a move is left to routers that can read its record.
func (l *Loop[T]) leave(r *Record) {
	if l.told[r.Application] != r.version {
		l.told[r.Application] = r.version
		l.cfg.Log.Warn("move left to routers of another version",
			"application", r.Application.String(), "why", r.Why)
	}
}

// forget drops the log state of finished moves.
func (l *Loop[T]) forget(all []Record) {
	if len(l.told) == 0 {
		return
	}
	there := map[creel.ApplicationID]bool{}
	for i := range all {
		there[all[i].Application] = true
	}
	maps.DeleteFunc(l.told, func(app creel.ApplicationID, _ int64) bool { return !there[app] })
}

// carry continues one move.
func (l *Loop[T]) carry(ctx context.Context, view *subcluster.View, r Record, now time.Time) error {
	became, why := l.step(ctx, view, r)
	if became == router.MoveLater {
		l.cfg.Log.Debug("move delayed", "application", r.Application.String(), "why", why)
		return nil
	}
	over, there, err := end(ctx, l.cfg.Store, r, became == router.MoveDone, why, now, l.cfg.Recording)
	if err != nil || !there {
		return err
	}
	line := audit.Line{
		User: r.By, Operation: "move waiting application", Target: r.Application.String(), Result: audit.Success,
	}
	if became != router.MoveDone {
		line.Result, line.Error = audit.Failure, why
	}
	line.Log(l.cfg.Log, slog.String("from_subcluster", string(r.From)), slog.String("to_subcluster", string(r.To)),
		slog.String("reason", r.Why), slog.String("became", became.String()))
	if l.cfg.Over != nil {
		l.cfg.Over(over)
	}
	return nil
}

// step continues a move as far as possible now.
func (l *Loop[T]) step(ctx context.Context, view *subcluster.View, r Record) (router.MoveEnd, string) {
	from, ok := view.Member(r.From)
	switch {
	case l.gone.Removed(view, r.From) && r.Arrived > 0: // no member is left that must drop it
		return router.MoveDone, ""
	case l.gone.Removed(view, r.From):
		return router.MoveStays, fmt.Sprintf("%s was removed from the federation", r.From)
	case !ok || !from.State.Alive():
		return router.MoveLater, "its move waits for " + string(r.From)
	}
	if r.GiveUp == "" && r.Arrived == 0 {
		r.GiveUp = hindrance(view, &r)
	}
	return l.cfg.Mover.Carry(ctx, r.HomeMove)
}

// hindrance returns the reason why a move should be abandoned now; empty if there is none.
func hindrance(view *subcluster.View, r *Record) string {
	switch to, ok := view.Member(r.To); {
	case !ok:
		return fmt.Sprintf("%s is not in the federation any more", r.To)
	case to.State != subcluster.StateActive:
		return fmt.Sprintf("%s is %s", r.To, to.State)
	case r.Age > Patience:
		return fmt.Sprintf("it did not arrive at %s within %s", r.To, Patience)
	}
	return ""
}

// arrived is the Mover's Arrived: it records that the next home has the application. If there is no record, another
// router has ended the move.
func (l *Loop[T]) arrived(ctx context.Context, m router.HomeMove, claim int64) error {
	_, err := change(ctx, l.cfg.Store, m.Application, func(r *Record) { r.Arrived = claim })
	return err
}

// disown is the Mover's Disown. It does not ask a member that was removed from the federation: such a member counts
// as having no application. No process could answer for it, and its holds would last for ever.
func (l *Loop[T]) disown(
	ctx context.Context, at creel.SubclusterID, app creel.ApplicationID, claim int64,
) (router.Standing, error) {
	if l.gone.Removed(l.cfg.View(), at) {
		return router.Disowned, nil
	}
	return l.ask(ctx, at, app, claim)
}

// mend ends holds that two successive checks found without a record.
func (l *Loop[T]) mend(ctx context.Context, view *subcluster.View, all []Record) {
	moving := map[creel.ApplicationID]bool{}
	for _, r := range all {
		moving[r.Application] = true
	}
	seen := map[place]bool{}
	for i := range view.Members {
		m := &view.Members[i]
		if !m.State.Alive() || m.Load.Metrics.AppsPending == 0 {
			continue
		}
		held, err := l.cfg.Held(ctx, m)
		if err != nil {
			continue // the next check covers it
		}
		for _, h := range held {
			p := place{h.Application, m.ID}
			if moving[h.Application] {
				continue
			}
			seen[p] = true
			if !l.seen[p] {
				continue
			}
			var others []creel.SubclusterID
			for k := range view.Members {
				if o := &view.Members[k]; o.ID != m.ID && o.State != subcluster.StateDeregistered {
					others = append(others, o.ID)
				}
			}
			done, what := l.cfg.Mover.Mend(ctx, h.Application, m.ID, h.Claim, others)
			l.cfg.Log.Warn("application held for an unrecorded move",
				"application", h.Application.String(), "subcluster", string(m.ID), "mended", done, "what", what)
			if done {
				delete(seen, p)
			}
		}
	}
	l.seen = seen
}
