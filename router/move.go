// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
)

// HomeMove is an application on its way from its home to another, before any of its containers run. It is recorded in
// the state store until it is over (package statestore/moves), so that any router can continue it.
type HomeMove struct {
	Application creel.ApplicationID
	From, To    creel.SubclusterID
	Why         string // "sc-1 is drained": shown to its user while it moves
	// Arrived is the number of the claim under which To has taken it, 0 before. From then on only the old home
	// remains to be told.
	Arrived int64
	// GiveUp is why it should stay at From unless it has left already; empty: it should move.
	GiveUp string
}

// MoveEnd is the outcome of a move.
type MoveEnd int

// The ends. A move that is not over stays on record and is carried on later.
const (
	MoveLater MoveEnd = iota // a member did not answer, or another router was faster
	MoveDone                 // To has it, and From has forgotten it
	MoveStays                // it stays at From, as if it had not been requested
)

func (e MoveEnd) String() string { return [...]string{"goes on", "moved", "stays"}[e] }

// Mover carries out moves. All its fields are set once, before use; it is safe for concurrent use if its functions
// are. T is the data of a held application that its next home needs: the submission message and any other state that
// must survive.
//
// Several routers may carry out one move at the same time, and each may die between any two steps: each step is made
// under a claim of its own, which orders it among those of others, as submissions are (docs/adr/0013-fence.md,
// docs/adr/0021-moving-waiting-applications.md).
type Mover[T any] struct {
	Homes Homes
	// Disown is as for a Submitter.
	Disown Disown
	// Hold makes a member stop scheduling an application and returns the data that its next home needs. It is durable
	// before it is answered, and rejected once a container was granted.
	Hold func(ctx context.Context, at creel.SubclusterID, app creel.ApplicationID, claim int64, why string) (T, error)
	// Release undoes Hold, Drop deletes the application at the home that it has left.
	Release func(ctx context.Context, at creel.SubclusterID, app creel.ApplicationID, claim int64) error
	Drop    func(ctx context.Context, at creel.SubclusterID, app creel.ApplicationID, claim int64) error
	// Submit passes the held data to the next home, under the number of a claim.
	Submit func(
		ctx context.Context,
		to creel.SubclusterID,
		app creel.ApplicationID,
		held T,
		claim int64,
	) (Verdict, error)
	// Arrived writes into the record that the next home has taken it.
	Arrived func(ctx context.Context, m HomeMove, claim int64) error
	// Now is time.Now; it only dates the record of why the home was chosen.
	Now func() time.Time
}

// Carry takes a move as far as it can now. It returns the outcome and the reason.
//
//  1. Claim the home again: the newest claim may act.
//  2. Still at From: have To disown it up to this claim (so that To is certain to be a member that can reject late
//     requests), have From hold it, and change the home by compare-and-set on the number of the claim.
//  3. At To: submit there the data that From holds, record the arrival, have From drop it.
//  4. To rejects it, or the move is abandoned: once To certainly does not have it, the home changes back, and From
//     releases it under a claim that is newer than all before.
//
// A store that has lost writes may name From as the home although To has taken it. So To is asked first, also if the
// move is abandoned and To answers.
func (r *Mover[T]) Carry(ctx context.Context, m HomeMove) (MoveEnd, string) {
	if m.Arrived > 0 {
		return r.drop(ctx, m, m.Arrived)
	}
	home, err := r.Homes.Home(ctx, m.Application)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		home, err = m.From, nil // the store lost it, or it ended long ago: To knows
	}
	if err != nil {
		return MoveLater, err.Error()
	}
	home, number, err := r.Homes.Claim(ctx, m.Application, home, nil)
	switch {
	case err != nil:
		return MoveLater, err.Error()
	case home == m.From:
		return r.leave(ctx, m, number)
	case home == m.To:
		return r.deliver(ctx, m, number)
	}
	// It went on to another home, by a repeat of its submission.
	return r.settle(ctx, m, home, number)
}

// leave takes the application from its home, and continues at the next.
func (r *Mover[T]) leave(ctx context.Context, m HomeMove, number int64) (MoveEnd, string) {
	standing, err := r.Disown(ctx, m.To, m.Application, number)
	switch {
	case err != nil && m.GiveUp != "":
		return r.release(ctx, m, number, m.GiveUp) // by the store it never left
	case err != nil:
		return MoveLater, err.Error()
	case standing != Running && m.GiveUp != "":
		return r.release(ctx, m, number, m.GiveUp)
	case standing == Absent:
		return r.release(ctx, m, number, fmt.Sprintf("%s cannot promise to reject late requests: its"+
			" ResourceManager is not creel's, or older", m.To))
	}
	held, err := r.Hold(ctx, m.From, m.Application, number, fmt.Sprintf("%s, because %s", m.To, m.Why))
	if end, why, over := refusedHold(err); over {
		return end, why
	}
	placement := r.placement(m)
	if _, err = r.Homes.Move(ctx, m.Application, m.From, m.To, number, placement); err != nil {
		return MoveLater, err.Error() // the next round looks up its home
	}
	if standing == Running { // the store lost that it had moved
		return r.arrived(ctx, m, number+1)
	}
	return r.submit(ctx, m, held, number+1)
}

// refusedHold interprets the answer to a hold; over is set unless the application is held.
func refusedHold(err error) (end MoveEnd, why string, over bool) {
	switch {
	case err == nil:
		return 0, "", false
	case errors.Is(err, creel.ErrInvalidRequest), errors.Is(err, creel.ErrApplicationNotFound),
		errors.Is(err, creel.ErrNotPermitted):
		return MoveStays, err.Error(), true
	}
	return MoveLater, err.Error(), true
}

// deliver continues a move whose home has changed already: From holds the application, and To may not have it yet.
func (r *Mover[T]) deliver(ctx context.Context, m HomeMove, number int64) (MoveEnd, string) {
	held, err := r.Hold(ctx, m.From, m.Application, number, fmt.Sprintf("%s, because %s", m.To, m.Why))
	switch end, why, over := refusedHold(err); {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return MoveDone, "" // dropped already, so it arrived
	case over && end == MoveStays:
		// From does not hold it, and has it: it ended there, or a store that lost its numbers released it. It is at
		// home there, unless To has it.
		return r.back(ctx, m, number, why)
	case over:
		return end, why
	}
	return r.submit(ctx, m, held, number)
}

// submit passes the data that From holds to To.
func (r *Mover[T]) submit(ctx context.Context, m HomeMove, held T, number int64) (MoveEnd, string) {
	why := m.GiveUp
	if why == "" {
		verdict, err := r.Submit(ctx, m.To, m.Application, held, number)
		switch {
		case verdict == Accepted:
			return r.arrived(ctx, m, number)
		case verdict != Refused || errors.Is(err, creel.ErrUnavailable) || errors.Is(err, creel.ErrBusy) ||
			errors.Is(err, creel.ErrReadOnly):
			return MoveLater, errText(err)
		}
		why = fmt.Sprintf("%s refuses it: %s", m.To, errText(err))
	}
	return r.back(ctx, m, number, why)
}

// back makes From the home again, once To certainly does not have the application and never will under the claims so
// far.
func (r *Mover[T]) back(ctx context.Context, m HomeMove, number int64, why string) (MoveEnd, string) {
	switch standing, err := r.Disown(ctx, m.To, m.Application, number); {
	case err != nil:
		return MoveLater, err.Error()
	case standing == Running:
		return r.arrived(ctx, m, number)
	case standing == Absent:
		return MoveLater, fmt.Sprintf("%s cannot promise to reject late requests", m.To)
	}
	if _, err := r.Homes.Move(ctx, m.Application, m.To, m.From, number, nil); err != nil {
		return MoveLater, err.Error()
	}
	return r.release(ctx, m, number+1, why)
}

func (r *Mover[T]) arrived(ctx context.Context, m HomeMove, number int64) (MoveEnd, string) {
	if err := r.Arrived(ctx, m, number); err != nil {
		return MoveLater, err.Error()
	}
	return r.drop(ctx, m, number)
}

func (r *Mover[T]) drop(ctx context.Context, m HomeMove, number int64) (MoveEnd, string) {
	switch err := r.Drop(ctx, m.From, m.Application, number); {
	case errors.Is(err, creel.ErrInvalidRequest): // From has it by a later claim
		return MoveStays, err.Error()
	case err != nil:
		return MoveLater, err.Error()
	}
	return MoveDone, ""
}

// release ends a move that does not happen. The number is of a claim, or a move, under which From was the home: no
// change of home under an older one can succeed any more.
func (r *Mover[T]) release(ctx context.Context, m HomeMove, number int64, why string) (MoveEnd, string) {
	err := r.Release(ctx, m.From, m.Application, number)
	if err != nil && !errors.Is(err, creel.ErrApplicationNotFound) {
		return MoveLater, err.Error()
	}
	return MoveStays, why
}

// settle ends a hold at From of an application whose home is another one.
func (r *Mover[T]) settle(ctx context.Context, m HomeMove, home creel.SubclusterID, number int64) (MoveEnd, string) {
	at := fmt.Sprintf("its home is %s", home)
	switch standing, err := r.Disown(ctx, home, m.Application, number); {
	case err != nil:
		return MoveLater, err.Error()
	case standing == Running:
		end, why := r.drop(ctx, m, number)
		if end == MoveDone {
			end, why = MoveStays, at
		}
		return end, why
	case standing == Absent:
		return MoveLater, at + ", which cannot promise to reject late requests"
	}
	if _, err := r.Homes.Move(ctx, m.Application, home, m.From, number, nil); err != nil {
		return MoveLater, err.Error()
	}
	return r.release(ctx, m, number+1, at+", which does not have it")
}

// Mend ends a hold without a recorded move: the store lost it. held is the number that the member at has in its list;
// others are all other members. The member that has the application is its home, and if none has it, it is released
// where it is. It returns whether that is done, and a text of the action taken or of the obstacle.
func (r *Mover[T]) Mend(
	ctx context.Context,
	app creel.ApplicationID,
	at creel.SubclusterID,
	held int64,
	others []creel.SubclusterID,
) (done bool, what string) {
	home, number, err := r.Homes.Claim(ctx, app, at, nil)
	if err != nil {
		return false, err.Error()
	}
	has := at
	for _, id := range others {
		standing, err := r.Disown(ctx, id, app, number)
		if err != nil {
			return false, fmt.Sprintf("%s did not answer whether it has it: %v", id, err)
		}
		if standing == Running {
			has = id
		}
	}
	if home != has {
		if _, err := r.Homes.Move(ctx, app, home, has, number, nil); err != nil {
			return false, err.Error()
		}
		number++
	}
	if has != at {
		what, err = "dropped: its home is "+string(has), r.Drop(ctx, at, app, max(number, held))
	} else {
		what, err = "released: no other member has it", r.Release(ctx, at, app, max(number, held))
	}
	if err != nil {
		return false, err.Error()
	}
	return true, what
}

// placement is stored with the change of home, so that `creel app why` reports it at any router.
func (r *Mover[T]) placement(m HomeMove) []byte {
	now := r.Now()
	p := Placement{Received: now, Claimed: now, Tries: []PlacementTry{
		{Member: m.From, Verdict: "left", Err: m.Why, Claimed: true},
		{Member: m.To, Reason: policies.Reason{
			Policy: "move", Chosen: m.To, Because: fmt.Sprintf("moved from %s while it waited: %s", m.From, m.Why),
		}},
	}}
	return p.Encode()
}

func errText(err error) string {
	if err == nil {
		return "no answer"
	}
	return err.Error()
}
