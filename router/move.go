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

// HomeMove is the move of an application from its home to another, before any of its containers run. It is recorded
// in the state store until it ends (package router/moves), so that any router can continue it.
type HomeMove struct {
	Application creel.ApplicationID
	From, To    creel.SubclusterID
	Why         string // "sc-1 is drained"; shown to the user during the move
	// Arrived is the number of the claim under which To has accepted it, 0 before. From then on only From must still
	// drop it.
	Arrived int64
	// GiveUp is the reason why it should stay at From unless it has left already; empty: it should move.
	GiveUp string
}

// MoveEnd is the outcome of a move.
type MoveEnd int

// The outcomes. A move with MoveLater stays recorded and is continued later.
const (
	MoveLater MoveEnd = iota // a member did not answer, or another router was faster
	MoveDone                 // To has it, and From has dropped it
	MoveStays                // it stays at From, as if it had not been requested
)

func (e MoveEnd) String() string { return [...]string{"goes on", "moved", "stays"}[e] }

// Mover carries out moves. All its fields are set once, before use. It is safe for concurrent use if its functions
// are. T is the data of a held application for its next home: the submission message and any other state that must
// survive.
//
// Several routers may carry out one move at the same time, and each may die between any two steps. Each step has its
// own claim, which orders it among the steps of other routers, as with submissions (docs/adr/0013-fence.md,
// docs/adr/0021-moving-waiting-applications.md).
type Mover[T any] struct {
	Homes Homes
	// Disown is the same as for a Submitter.
	Disown Disown
	// Hold makes a member stop scheduling an application, and returns the data for its next home. The member makes
	// the hold durable before it answers. It rejects the hold once a container was granted.
	Hold func(ctx context.Context, at creel.SubclusterID, app creel.ApplicationID, claim int64, why string) (T, error)
	// Release undoes Hold. Drop deletes the application at its former home.
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
	// Arrived records that the next home has accepted it.
	Arrived func(ctx context.Context, m HomeMove, claim int64) error
	// Now is time.Now; it is used only for the times of the placement record.
	Now func() time.Time
}

// Carry continues a move as far as possible now. It returns the outcome and the reason.
//
//  1. Claim the home again: the newest claim may act.
//  2. If home is still From: To disowns it up to this claim, which proves that To can reject late requests. Then From
//     holds it, and the home changes by compare-and-set on the number of the claim.
//  3. If home is To: submit the data from From there, record the arrival, and let From drop it.
//  4. If To rejects it, or the move is abandoned: once To certainly does not have it, the home changes back. Then
//     From releases it under a claim that is newer than all before.
//
// A store that lost writes may have From as the home although To has accepted it. So To is asked first, even if the
// move is abandoned.
func (r *Mover[T]) Carry(ctx context.Context, m HomeMove) (MoveEnd, string) {
	if m.Arrived > 0 {
		return r.drop(ctx, m, m.Arrived)
	}
	home, err := r.Homes.Home(ctx, m.Application)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		home, err = m.From, nil // the store lost it, or it ended long ago: To decides
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
	// It moved on to another home, by a repeat of its submission.
	return r.settle(ctx, m, home, number)
}

// leave takes the application from its home, and continues at the next home.
func (r *Mover[T]) leave(ctx context.Context, m HomeMove, number int64) (MoveEnd, string) {
	standing, err := r.Disown(ctx, m.To, m.Application, number)
	switch {
	case err != nil && m.GiveUp != "":
		return r.release(ctx, m, number, m.GiveUp) // by the store it has not left
	case err != nil:
		return MoveLater, err.Error()
	case !standing.took() && m.GiveUp != "":
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
	if standing.took() { // the store had lost the move
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

// deliver continues a move after the home has changed: From holds the application, and To may not have it yet.
func (r *Mover[T]) deliver(ctx context.Context, m HomeMove, number int64) (MoveEnd, string) {
	held, err := r.Hold(ctx, m.From, m.Application, number, fmt.Sprintf("%s, because %s", m.To, m.Why))
	switch end, why, over := refusedHold(err); {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return MoveDone, "" // From has dropped it, so it arrived
	case over && end == MoveStays:
		// From has it without a hold: it ended there, or it was released after the store lost its numbers. Its home
		// is From, unless To has it.
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

// back makes From the home again, if To certainly does not have the application and will reject it under all claims
// so far.
func (r *Mover[T]) back(ctx context.Context, m HomeMove, number int64, why string) (MoveEnd, string) {
	switch standing, err := r.Disown(ctx, m.To, m.Application, number); {
	case err != nil:
		return MoveLater, err.Error()
	case standing.took():
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
	case errors.Is(err, creel.ErrInvalidRequest): // From got it under a later claim
		return MoveStays, err.Error()
	case err != nil:
		return MoveLater, err.Error()
	}
	return MoveDone, ""
}

// release ends a move that does not take place. number is the number of a claim or move under which From was the
// home, so no change of home under an older number can succeed any more.
func (r *Mover[T]) release(ctx context.Context, m HomeMove, number int64, why string) (MoveEnd, string) {
	err := r.Release(ctx, m.From, m.Application, number)
	if err != nil && !errors.Is(err, creel.ErrApplicationNotFound) {
		return MoveLater, err.Error()
	}
	return MoveStays, why
}

// settle ends the hold at From of an application whose home is a third member.
func (r *Mover[T]) settle(ctx context.Context, m HomeMove, home creel.SubclusterID, number int64) (MoveEnd, string) {
	at := fmt.Sprintf("its home is %s", home)
	switch standing, err := r.Disown(ctx, home, m.Application, number); {
	case err != nil:
		return MoveLater, err.Error()
	case standing.took():
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

// Mend ends a hold without a recorded move: the store lost the record. at is the member with the hold, and held the
// number in its list. others has all other members. If one of them has the application, it becomes the home.
// Otherwise at releases the application. It returns whether that is done, and the action or the obstacle as text.
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
			return false, fmt.Sprintf("failed to ask %s whether it has it: %v", id, err)
		}
		if standing.took() {
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

// placement returns the placement to store with the change of home, for `creel app why` at any router.
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
