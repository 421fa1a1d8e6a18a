// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"time"

	"github.com/creelrm/creel"
)

// Acceptances is the part of the state store for acceptances by homes that cannot disown (Hadoop's); package
// statestore documents it.
type Acceptances interface {
	Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error
	AcceptedIn(ctx context.Context, app creel.ApplicationID) (life int64, err error)
}

// Life returns the start of the process that acts for a member, in ms; 0 for a member that can disown. Without fresh
// it may be the start of an earlier process, but never of a later one.
type Life func(ctx context.Context, member creel.SubclusterID, fresh bool) (int64, error)

// accepting returns a Forward that records acceptances. The life is read before the call: if it is old by then, the
// record proves nothing later. A failed record changes no answer: the member has the application, and a repeat of its
// submission records it again while the member lists it.
func (s *Submitter) accepting(app creel.ApplicationID, forward Forward) Forward {
	if s.Acceptances == nil {
		return forward
	}
	return func(ctx context.Context, member creel.SubclusterID, number int64) (Verdict, error) {
		life, _ := s.Life(ctx, member, false)
		verdict, err := forward(ctx, member, number)
		if verdict == Accepted && life > 0 {
			_ = s.Acceptances.Accept(ctx, app, member, life)
		}
		return verdict, err
	}
}

// asking is the same for a fence: a member that has the application has accepted it.
func (s *Submitter) asking(ctx context.Context, app creel.ApplicationID, at claim) (Standing, error) {
	var life int64
	if s.Acceptances != nil {
		life, _ = s.Life(ctx, at.home, false)
	}
	standing, err := s.Disown(ctx, at.home, app, at.number)
	if err == nil && standing == Running && life > 0 {
		_ = s.Acceptances.Accept(ctx, app, at.home, life)
	}
	return standing, err
}

// forgotten handles a claim of an application that its home accepted and does not list any more. A ResourceManager of
// Hadoop's drops its oldest ended applications and would run a repeated submission. In the life in which it accepted
// the application it loses none, so the application has ended. After a restart it may have lost the application: then
// forgotten is false, as for an application that it lists or of which no acceptance is recorded.
func (s *Submitter) forgotten(ctx context.Context, out Outcome, at claim) (_ Outcome, over bool) {
	if s.Acceptances == nil {
		return out, false
	}
	if life, err := s.Life(ctx, at.home, false); err == nil && life == 0 {
		return out, false
	}
	accepted, err := s.Acceptances.AcceptedIn(ctx, out.Application)
	if err != nil {
		return out.fail(err), true
	}
	if accepted == 0 {
		return out, false
	}
	// The life is read after the question: so the answer is of this life or of an earlier one.
	standing, err := s.Disown(ctx, at.home, out.Application, at.number)
	var life int64
	if err == nil && standing == Absent {
		life, err = s.Life(ctx, at.home, true)
	}
	try := Try{Member: at.home, Claim: at.number, Claimed: true}
	switch {
	case err != nil:
		try.Verdict, try.Err = Unclear, err
		out.Err = unconfirmed(out.Application, at.home, err)
	case life != accepted:
		return out, false
	default:
		try.Verdict, try.Err = Refused, hasEnded(out.Application,
			"%s accepted it, has run since %s, and no longer lists it; how it ended is unknown",
			at.home, time.UnixMilli(life).UTC().Format(time.RFC3339))
		out.Err = try.Err
	}
	out.Tries = append(out.Tries, try)
	return out, true
}
