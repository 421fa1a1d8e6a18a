// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/moves"
)

// Moves has the moves of waiting applications: moves under way, finished moves, newest first, and moves that would
// start now.
type Moves struct {
	Under []MoveUnder             `json:"under"`
	Last  []moves.FinishedMove    `json:"last"`
	Next  []rebalancer.ChosenMove `json:"next"`
	Notes []string                `json:"notes,omitempty"` // why other applications stay
	Note  string                  `json:"note,omitempty"`  // set if the state store does not answer
}

// MoveDone is a finished move.
type MoveDone = moves.FinishedMove

// MoveUnder is a move under way.
type MoveUnder struct {
	rebalancer.ChosenMove
	By      string  `json:"by,omitempty"`
	AgeS    float64 `json:"age_s"` // since its request or last change
	Arrived bool    `json:"arrived"`
	GiveUp  string  `json:"give_up,omitempty"`
	Undo    bool    `json:"undo,omitempty"` // it undoes another move
}

// Moves reads the moves. If as is a member, it computes the moves that would start if this member were drained with
// Mode Move.
func (o *Operator) Moves(ctx context.Context, as creel.SubclusterID) (out Moves, err error) {
	if as != "" {
		if _, ok := o.conf.View().Member(as); !ok {
			return out, noMember(as)
		}
	}
	under, _, err := moves.All(ctx, o.conf.Store)
	if err = without(ctx, err, "moves under way"); err != nil {
		return out, err
	}
	out.Under, out.Next = []MoveUnder{}, []rebalancer.ChosenMove{}
	for i := range under {
		out.Under = append(out.Under, moveUnder(&under[i]))
	}
	out.Last, err = moves.Last(ctx, o.conf.Store)
	if err = without(ctx, err, "finished moves"); err != nil {
		return out, err
	}
	if out.Last == nil {
		out.Last = []moves.FinishedMove{}
	}
	if o.conf.Preview != nil {
		next, notes, err := o.conf.Preview(ctx, as)
		if err = without(ctx, err, "the next moves"); err != nil {
			return out, err
		}
		out.Next, out.Notes = append(out.Next, next...), notes
	}
	return out, nil
}

// MovesOf returns the moves of one application: the one under way, nil for none, and the finished ones, newest first.
func (o *Operator) MovesOf(ctx context.Context, app creel.ApplicationID) (*MoveUnder, []moves.FinishedMove, error) {
	all, _, err := moves.All(ctx, o.conf.Store)
	if err = without(ctx, err, "its move under way"); err != nil {
		return nil, nil, err
	}
	last, err := moves.Last(ctx, o.conf.Store)
	if err = without(ctx, err, "its finished moves"); err != nil {
		return nil, nil, err
	}
	last = slices.DeleteFunc(last, func(d moves.FinishedMove) bool { return d.Application != app })
	for i := range all {
		if all[i].Application == app {
			under := moveUnder(&all[i])
			return &under, last, nil
		}
	}
	return nil, last, nil
}

func moveUnder(r *moves.Record) MoveUnder {
	return MoveUnder{
		ChosenMove: rebalancer.ChosenMove{
			Application: r.Application, From: r.From, To: r.To, Queue: r.Queue, Why: r.Why,
		},
		By: r.By, AgeS: r.Age.Seconds(), Arrived: r.Arrived > 0, GiveUp: r.GiveUp, Undo: r.Undo,
	}
}

// UndoResult is the result of undoing one application's move.
type UndoResult struct {
	Application creel.ApplicationID `json:"application"`
	Result      string              `json:"result"`
}

// NoMove is the result for a named application without a known move.
const NoMove = "no move of it is known"

// undoFor is the time for which finished moves are undone without being named.
const undoFor = time.Hour

// movedByOthers is the result for an application whose record another router changes at the same time.
const movedByOthers = "its move is not undone: another was begun or changed at the same time;" +
	" see `creel rebalancer moves`, then try again"

// UndoMoves moves applications back. It abandons a move under way. It reverses a finished move if the application
// still waits. Without names it covers all moves under way, and all finished within the last hour. It skips moves
// that are already undone; these are reversed again only if named. An undo under way continues. A move that another
// router changes at the same time is skipped. If the store fails after some moves, the result lists these and the
// store's error.
func (o *Operator) UndoMoves(ctx context.Context, user string, apps []creel.ApplicationID) ([]UndoResult, error) {
	if err := o.allow(user, "undo moves of applications"); err != nil {
		return nil, err
	}
	under, now, err := moves.All(ctx, o.conf.Store)
	if err != nil {
		return nil, err
	}
	last, err := moves.Last(ctx, o.conf.Store)
	if err != nil {
		return nil, err
	}
	u := undoing{
		o: o, user: user, out: []UndoResult{},
		named: map[creel.ApplicationID]bool{}, seen: map[creel.ApplicationID]bool{},
	}
	for _, a := range apps {
		u.named[a] = true
	}
	for _, r := range under {
		if len(apps) > 0 && !u.named[r.Application] {
			continue
		}
		if err := u.abandon(ctx, r); err != nil {
			return u.stopped(r.Application, err)
		}
	}
	for _, d := range last {
		if u.seen[d.Application] || len(apps) > 0 && !u.named[d.Application] || !u.reversible(d, now) {
			continue
		}
		if err := u.reverse(ctx, d); err != nil {
			return u.stopped(d.Application, err)
		}
	}
	for _, a := range apps {
		if !u.seen[a] {
			u.say(a, NoMove)
		}
	}
	return u.out, nil
}

// undoing is one call of UndoMoves.
type undoing struct {
	o     *Operator
	user  string
	named map[creel.ApplicationID]bool // empty: all moves
	seen  map[creel.ApplicationID]bool // applications with a result
	out   []UndoResult
}

func (u *undoing) say(app creel.ApplicationID, format string, args ...any) {
	u.seen[app] = true
	u.out = append(u.out, UndoResult{app, fmt.Sprintf(format, args...)})
}

// stopped returns the results so far and the store's error; only the error if there is no result.
func (u *undoing) stopped(app creel.ApplicationID, err error) ([]UndoResult, error) {
	if len(u.out) == 0 {
		return nil, err
	}
	u.say(app, "its move is not undone, nor are others that are not named here: %v; try again", err)
	return u.out, nil
}

// abandon abandons a move under way. An error is the store's.
func (u *undoing) abandon(ctx context.Context, r moves.Record) error {
	switch {
	case r.Unreadable:
		u.say(r.Application, "its move goes on: %s; ask a router of the version that began it", r.Why)
		return nil
	case r.Undo && (r.GiveUp == "" || r.Arrived > 0):
		u.say(r.Application, "it is already moving back to %s, if it still waits", r.To)
		return nil
	case r.Undo:
		u.say(r.Application, "it does not go back to %s: %s", r.To, r.GiveUp)
		return nil
	case r.Arrived > 0:
		u.say(r.Application, "it has just arrived at %s: try again in a moment", r.To)
		return nil
	}
	_, err := moves.GiveUp(ctx, u.o.conf.Store, r.Application, "undone by "+u.user)
	switch {
	case errors.Is(err, creel.ErrConflict):
		u.say(r.Application, movedByOthers)
	case err != nil:
		return err
	default:
		u.say(r.Application, "it stays in %s", r.From)
	}
	return nil
}

// reversible reports whether a finished move is to be reversed. It adds the result of a move that is undone already.
func (u *undoing) reversible(d moves.FinishedMove, now time.Time) bool {
	all := len(u.named) == 0
	switch {
	case all && now.Sub(d.At) > undoFor:
		return false
	case all && d.Undo && d.Moved:
		u.say(d.Application, "it went back to %s already; name it to move it to %s again", d.To, d.From)
		return false
	case all && d.Undo:
		u.say(d.Application, "it did not go back to %s: %s; name it to try again", d.To, d.Because)
		return false
	}
	return d.Moved
}

// reverse begins the move back of a finished one. An error is the store's.
func (u *undoing) reverse(ctx context.Context, d moves.FinishedMove) error {
	view := u.o.conf.View()
	switch is, ok := view.Member(d.To); {
	case !ok:
		u.say(d.Application, "it does not go back: %s, to which it went, is not in the federation any more", d.To)
		return nil
	case !is.State.Alive():
		u.say(d.Application, "it does not go back: %s, to which it went, is %s", d.To, is.State)
		return nil
	}
	home, ok := view.Member(d.From)
	if !ok || !home.State.Alive() || home.Draining != "" {
		u.say(d.Application, "it stays in %s: %s takes no applications", d.To, d.From)
		return nil
	}
	err := moves.Begin(ctx, u.o.conf.Store, moves.Record{
		HomeMove: router.HomeMove{
			Application: d.Application, From: d.To, To: d.From, Why: "its move is undone by " + u.user,
		},
		Queue: d.Queue, By: u.user, Undo: true,
	})
	switch {
	case errors.Is(err, creel.ErrConflict):
		u.say(d.Application, movedByOthers)
	case err != nil:
		return err
	default:
		u.say(d.Application, "it goes back to %s, if it still waits", d.From)
	}
	return nil
}
