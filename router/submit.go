// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// Homes is what the router needs of the state store: see the promises of
// package statestore. Claim tells whether the record is new: a claim that was
// there before may have been acted on by another router.
type Homes interface {
	Claim(
		ctx context.Context,
		app creel.ApplicationID,
		member creel.SubclusterID,
	) (home creel.SubclusterID, fresh bool, err error)
	Move(ctx context.Context, app creel.ApplicationID, from, to creel.SubclusterID) (home creel.SubclusterID, err error)
	Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
}

// Verdict is what became of a call to a member, as far as it can be known.
type Verdict int

// The verdicts. They decide whether a home may be left.
const (
	Accepted Verdict = iota // the member took it, now or earlier
	Refused                 // the member answered no: it does not run there
	NotSent                 // the call never reached the member
	Unclear                 // it may have reached it; the answer was lost
)

func (v Verdict) String() string {
	return [...]string{"accepted", "refused", "not sent", "unclear"}[v]
}

// Forward hands the submission to a member, as the client sent it. It must
// count a repeat that the member already knows as Accepted.
type Forward func(ctx context.Context, member creel.SubclusterID) (Verdict, error)

// Known asks a member whether it knows an application. An error means that it
// could not be asked.
type Known func(ctx context.Context, member creel.SubclusterID, app creel.ApplicationID) (bool, error)

// Try is one member that a submission was offered to.
type Try struct {
	Member  creel.SubclusterID
	Reason  policies.Reason // why the policy chose it; empty Policy when an earlier claim did
	Claimed bool            // the home came from an earlier claim
	Verdict Verdict
	Err     error
}

// Outcome tells how a submission went: its home, the policy's choices in
// order, and the error the client gets, nil for success.
type Outcome struct {
	Application creel.ApplicationID
	Home        creel.SubclusterID
	Queue       creel.QueuePath
	Tries       []Try
	View        int64 // serial of the view the last choice was made on
	Err         error
}

// Submitter takes submissions. All its fields are set once, before use; it is
// safe for any number of callers as far as its functions are.
type Submitter struct {
	View   func() *subcluster.View
	Policy func(view *subcluster.View, queue creel.QueuePath) policies.Policy
	Homes  Homes
	Known  Known
	// Rand gives the random source of one submission.
	Rand func() *rand.Rand
	// MaxTries bounds the members a submission is offered to; 0 is all.
	MaxTries int
}

// Submit finds the application a home and forwards the submission to it, at
// most once to each member.
//
//  1. Choose by policy over the view, leaving out members already tried.
//  2. Claim; an earlier claim's home replaces the choice.
//  3. Forward.
//  4. On failure, find out whether the home may be left; if so move it to the
//     next choice by compare-and-set and forward there.
func (s *Submitter) Submit(ctx context.Context, sub policies.Submission, forward Forward) Outcome {
	out := Outcome{Application: sub.Application, Queue: sub.Queue}
	rnd := s.Rand()
	var tried []creel.SubclusterID
	fresh := false // nobody but us can have forwarded to out.Home
	for {
		if err := ctx.Err(); err != nil {
			return out.fail(deadline(err))
		}
		view := s.View()
		if view == nil {
			return out.fail(
				&creel.Error{
					Kind:       creel.ErrUnavailable,
					What:       "no view of the federation yet",
					Why:        "the router has not read the state store",
					Try:        "try again in a moment",
					RetryAfter: time.Second,
				},
			)
		}
		out.View = view.Serial
		chosen, reason, err := s.Policy(view, sub.Queue).Home(view, sub, tried, rnd)
		if err != nil {
			if len(out.Tries) == 0 {
				// No member can be chosen, yet an earlier claim may stand: a
				// repeat of a submission that ran must stay success.
				if home, lookErr := s.Homes.Home(ctx, sub.Application); lookErr == nil {
					out.Home = home
					verdict, fwdErr := forward(ctx, home)
					out.Tries = append(out.Tries, Try{Member: home, Claimed: true, Verdict: verdict, Err: fwdErr})
					if verdict == Accepted {
						return out
					}
				}
				return out.fail(fmt.Errorf("%w\n%s", err, reason))
			}
			return out.fail(out.worst(err))
		}
		try := Try{Member: chosen, Reason: reason}
		if out.Home == "" {
			out.Home, fresh, err = s.Homes.Claim(ctx, sub.Application, chosen)
		} else {
			out.Home, err = s.Homes.Move(ctx, sub.Application, out.Home, chosen)
			fresh = false // another router may have made the same move, and forwarded
			if errors.Is(err, creel.ErrConflict) && out.Home != "" {
				err = nil // another router moved it first: its home is the home
			}
		}
		if err != nil {
			return out.fail(err)
		}
		if out.Home != chosen {
			try = Try{Member: out.Home, Claimed: true}
			if slices.Contains(tried, out.Home) {
				return out.fail(out.worst(nil))
			}
		}
		try.Verdict, try.Err = forward(ctx, out.Home)
		if try.Verdict == Unclear || try.Verdict == NotSent && !fresh {
			try = s.ask(ctx, sub.Application, try)
		}
		out.Tries = append(out.Tries, try)
		switch {
		case try.Verdict == Accepted:
			return out
		case try.Verdict == Refused && errors.Is(try.Err, creel.ErrInvalidRequest):
			return out.fail(try.Err) // no other member would take it either
		case try.Verdict == Unclear:
			return out.fail(
				&creel.Error{
					Kind: creel.ErrUnavailable,
					What: fmt.Sprintf("submission of %s is not confirmed", sub.Application),
					Why: fmt.Sprintf(
						"its home %s did not answer and may run it: %v",
						out.Home,
						try.Err,
					),
					Try:        "submit the same id again",
					RetryAfter: time.Second,
				},
			)
		}
		tried = append(tried, out.Home)
		if s.MaxTries > 0 && len(tried) >= s.MaxTries {
			return out.fail(out.worst(nil))
		}
	}
}

// ask turns an unclear verdict into a sure one, if the member can be asked.
func (s *Submitter) ask(ctx context.Context, app creel.ApplicationID, try Try) Try {
	known, err := s.Known(ctx, try.Member, app)
	switch {
	case err != nil:
		try.Verdict = Unclear
		try.Err = errors.Join(try.Err, err)
	case known:
		try.Verdict, try.Err = Accepted, nil
	case try.Verdict == Unclear:
		try.Verdict = Refused
		if try.Err == nil {
			try.Err = &creel.Error{
				Kind: creel.ErrUnavailable,
				What: fmt.Sprintf("%s does not know %s", try.Member, app),
			}
		}
	}
	return try
}

func (o Outcome) fail(err error) Outcome {
	o.Err = err
	return o
}

// worst is the error to tell when every member has been tried: what a member
// answered is worth more than that none was left.
func (o Outcome) worst(none error) error {
	for _, t := range o.Tries {
		if t.Verdict == Refused && t.Err != nil {
			return t.Err
		}
	}
	last := none
	if n := len(o.Tries); n > 0 && o.Tries[n-1].Err != nil {
		last = o.Tries[n-1].Err
	}
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("no subcluster took %s", o.Application),
		Why: fmt.Sprintf(
			"%d tried; the last: %v",
			len(o.Tries),
			last,
		),
		Try:        "submit the same id again",
		RetryAfter: time.Second,
	}
}

func deadline(err error) error {
	return &creel.Error{
		Kind:       creel.ErrUnavailable,
		What:       "the submission ran out of time",
		Why:        err.Error(),
		Try:        "submit the same id again",
		RetryAfter: time.Second,
	}
}
