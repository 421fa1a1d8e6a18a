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
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Homes is the part of the state store that the router needs; package statestore documents it.
type Homes interface {
	statestore.Claims[creel.ApplicationID]
	Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
	// Ended returns when the home reported the application's end; zero: it has not.
	Ended(ctx context.Context, app creel.ApplicationID) (time.Time, error)
	// Absent records that a home that cannot disown answered that it does not know the application, after a call
	// under a claim. It returns the time for which the home has answered so.
	Absent(
		ctx context.Context,
		app creel.ApplicationID,
		home creel.SubclusterID,
		number int64,
		surely bool,
	) (waited time.Duration, err error)
}

// Verdict is the known outcome of a call to a member.
type Verdict int

// The verdicts. They decide whether a home may be left.
const (
	Accepted Verdict = iota // the member accepted it, now or earlier
	Refused                 // the member rejected it: it does not run there
	NotSent                 // the call never reached the member
	Unclear                 // the call may have reached the member; the answer was lost

	Verdicts = iota // number of verdicts
)

func (v Verdict) String() string {
	return [...]string{"accepted", "refused", "not sent", "unclear"}[v]
}

// Forward passes the submission to a member, as the client sent it, with the number of a claim. It must return
// Accepted for a repeat that the member already has. A member that disowned the application under this claim rejects
// the submission.
type Forward func(ctx context.Context, member creel.SubclusterID, claim int64) (Verdict, error)

// Standing is a member's answer to Disown.
type Standing int

// The standings.
const (
	Running  Standing = iota // the member has the application
	Disowned                 // it does not have it, and rejects it for ever under this and earlier claims
	Absent                   // it does not have it, and cannot reject late requests (Hadoop's)
	Ended                    // it ran it, and does not list it any more; it rejects it for ever under every claim
)

// took reports whether the member is where the application runs or ran.
func (s Standing) took() bool { return s == Running || s == Ended }

// Disown asks a member to reject an application for ever under claims up to a number, unless it has the application.
// The member makes that durable before it answers. An error means that the member could not be asked.
type Disown func(
	ctx context.Context,
	member creel.SubclusterID,
	app creel.ApplicationID,
	claim int64,
) (Standing, error)

// Try is the forwarding of a submission to one member.
type Try struct {
	Member  creel.SubclusterID
	Reason  policies.Reason // reason of the policy's choice; empty Policy if an earlier claim chose it
	Claimed bool            // the home came from an earlier claim
	Claim   int64           // number of the claim
	Verdict Verdict
	Until   time.Time // earliest time when an unclear home may be left; zero: unknown
	Err     error
}

// Outcome is the result of a submission: its home, the policy's choices in order, and the error for the client, nil
// for success.
type Outcome struct {
	Application creel.ApplicationID
	User        string // the submitter
	Home        creel.SubclusterID
	Queue       creel.QueuePath
	Tries       []Try
	View        int64 // serial of the view of the last choice
	Err         error
	// Received is the time of arrival at this router, by its clock; zero if not recorded.
	Received time.Time
}

// Submitter finds homes for submissions. All its fields are set once, before use. It is safe for concurrent use if
// its functions are.
type Submitter struct {
	View   func() *subcluster.View
	Policy func(view *subcluster.View, queue creel.QueuePath) policies.Policy
	Homes  Homes
	Disown Disown
	// Acceptances and Life prevent a second run of an application that a member which cannot disown ran and dropped.
	// nil: a repeat of its submission runs it again.
	Acceptances Acceptances
	Life        Life
	// UnclearWait is the time after which a member that cannot disown may be left; 0: never.
	UnclearWait time.Duration
	// Paused reports whether this process was paused within the last SocketLife. Then data that it sent before may
	// still leave its machine. nil: it was never paused.
	Paused func() bool
	// Now is time.Now, including this process's pauses; nil: claims do not expire, and no Try has an Until.
	Now func() time.Time
	// Rand returns the random source of one submission.
	Rand func() *rand.Rand
	// MaxTries bounds the members to which a submission is forwarded; 0: no bound.
	MaxTries int
}

// maxRounds bounds the repeats of a submission because another router moved the home meanwhile.
const maxRounds = 8

// claim is a home with the number of its claim. alone: no other router can have forwarded to this home. This router
// made the claim or move to it, and the store rejects this router's next move if there is another claim.
type claim struct {
	home   creel.SubclusterID
	number int64
	alone  bool
	asked  time.Time // start of the request to the store
}

// Submit finds the application a home and forwards the submission to it.
//
//  1. Choose by policy over the view, leaving out members already tried.
//  2. Claim the chosen home, or move to it from a home that may be left, by compare-and-set on the claim's number.
//     The home of an earlier claim replaces the choice. If that home reported the application's end, or accepted it and
//     no longer lists it, the submission ends here: it does not run again.
//  3. Forward under the claim's number.
//  4. On failure find out whether the home may be left. It may if the call was the only possible one and certainly
//     failed. It also may if the member disowned the application under this claim, or has answered for UnclearWait
//     that it does not know it.
func (s *Submitter) Submit(ctx context.Context, sub policies.Submission, forward Forward) Outcome {
	out := Outcome{Application: sub.Application, User: sub.User, Queue: sub.Queue}
	if s.Now != nil {
		out.Received = s.Now()
	}
	forward = s.accepting(sub.Application, forward)
	rnd := s.Rand()
	var tried []creel.SubclusterID
	var at claim
	for range maxRounds + s.MaxTries + len(membersOf(s.View())) {
		if err := ctx.Err(); err != nil {
			return out.fail(deadline(err))
		}
		view := s.View()
		if view == nil {
			return out.fail(noView())
		}
		out.View = view.Serial
		chosen, reason, err := s.Policy(view, sub.Queue).Home(view, sub, tried, rnd)
		if err != nil {
			if len(out.Tries) > 0 {
				return out.fail(out.worst(err))
			}
			return s.repeat(ctx, sub.Application, forward, out, fmt.Errorf("%w\n%s", err, reason))
		}
		if at, err = s.claim(ctx, &out, at, reason); err != nil {
			return out.fail(err)
		}
		if s.tooOld(at.asked) {
			at.home = "" // this router was paused: a new claim returns the present home
			continue
		}
		out.Home = at.home
		if !at.alone {
			if done, over := s.over(ctx, out, at); over {
				return done
			}
		}
		try := Try{Member: at.home, Claim: at.number}
		if at.home == chosen {
			try.Reason = reason
		} else {
			try.Claimed = true
		}
		try.Verdict, try.Err = forward(ctx, at.home, at.number)
		mayLeave := at.alone && (try.Verdict == NotSent || try.Verdict == Refused)
		if !mayLeave && try.Verdict != Accepted && !hopeless(try) {
			refused := try.Verdict == Refused
			try, mayLeave = s.fence(ctx, sub.Application, at, try)
			if refused && try.Verdict == Accepted {
				// The member has the application and rejected this submission. Either another user has the id, or
				// another submission arrived meanwhile. The answer to a repeat decides.
				if try.Verdict, try.Err = forward(ctx, at.home, at.number); try.Verdict == Refused {
					out.Tries = append(out.Tries, try)
					return out.fail(try.Err)
				}
			}
		}
		out.Tries = append(out.Tries, try)
		switch {
		case try.Verdict == Accepted:
			return out
		case hopeless(try):
			return out.fail(try.Err)
		case !mayLeave:
			return out.fail(unconfirmed(sub.Application, at.home, try.Err))
		}
		if !slices.Contains(tried, at.home) {
			tried = append(tried, at.home)
		}
		if s.MaxTries > 0 && len(tried) >= s.MaxTries {
			return out.fail(out.worst(nil))
		}
	}
	return out.fail(out.worst(nil))
}

// claim makes the chosen member the home: by a claim if there is no home to leave, else by a move from the home that
// is left. If another router was faster, its home applies. The reason is stored with the claim.
func (s *Submitter) claim(ctx context.Context, out *Outcome, left claim, reason policies.Reason) (claim, error) {
	app, chosen := out.Application, reason.Chosen
	var asked time.Time
	if s.Now != nil {
		asked = s.Now()
	}
	placement := out.placement(asked, reason).Encode()
	if left.home != "" {
		home, err := s.Homes.Move(ctx, app, left.home, chosen, left.number, placement)
		switch {
		case err == nil:
			return claim{home, left.number + 1, true, asked}, nil
		case !errors.Is(err, creel.ErrConflict):
			return left, err
		}
	}
	home, number, err := s.Homes.Claim(ctx, app, chosen, placement)
	return claim{home, number, number == 1, asked}, err
}

// fence resolves the failure of a call that may still arrive, or is not the only one. After it the member has the
// application, or rejects it under all claims so far. mayLeave reports whether the home may be left: not if the
// application ran there and has ended.
func (s *Submitter) fence(ctx context.Context, app creel.ApplicationID, at claim, try Try) (_ Try, mayLeave bool) {
	standing, err := s.asking(ctx, app, at)
	switch {
	case err != nil: // a Hadoop home's wait starts again, since the end of this claim is never recorded
		try.Verdict, try.Err = Unclear, errors.Join(try.Err, err)
		return try, false
	case standing == Running:
		try.Verdict, try.Err = Accepted, nil
		return try, false
	case standing == Absent:
		return s.absent(ctx, app, at, try)
	case standing == Ended:
		try.Verdict, try.Err = Refused, hasEnded(app, "it ran at %s, which no longer lists it", at.home)
		return try, false
	}
	if try.Verdict != Refused || try.Err == nil {
		try.Verdict = Refused
		try.Err = errors.Join(try.Err, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: fmt.Sprintf("%s does not have %s and will refuse it", at.home, app),
		})
	}
	return try, true
}

// hasEnded is the refusal of a repeat of an application that ran.
func hasEnded(app creel.ApplicationID, why string, args ...any) error {
	return &creel.Error{
		Kind: creel.ErrEnded,
		What: fmt.Sprintf("%s has ended", app),
		Why:  fmt.Sprintf(why, args...),
		Try:  "get a new application id to run it again",
	}
}

// over handles a claim of an application whose home reported its end. A ResourceManager drops its oldest ended
// applications and would run a repeated submission. So it is asked to disown the application, and gets no submission.
// over is false unless the application has ended for certain.
func (s *Submitter) over(ctx context.Context, out Outcome, at claim) (_ Outcome, over bool) {
	ended, err := s.Homes.Ended(ctx, out.Application)
	switch {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return out, false // the record was removed after the claim
	case err != nil:
		return out.fail(err), true
	case ended.IsZero():
		return s.forgotten(ctx, out, at)
	}
	try := Try{Member: at.home, Claim: at.number, Claimed: true}
	switch standing, err := s.Disown(ctx, at.home, out.Application, at.number); {
	case err != nil:
		try.Verdict, try.Err = Unclear, err
		out.Err = unconfirmed(out.Application, at.home, err)
	case standing == Running: // the member still lists it, ended or not
		try.Verdict = Accepted
	default:
		try.Verdict, try.Err = Refused, hasEnded(out.Application,
			"it ran at %s, which reported the end by %s", at.home, ended.UTC().Format(time.RFC3339))
		out.Err = try.Err
	}
	out.Tries = append(out.Tries, try)
	return out, true
}

// repeat handles a submission for which no member can be chosen now. If there is an earlier claim, the repeat of a
// submission that ran must still succeed.
func (s *Submitter) repeat(
	ctx context.Context,
	app creel.ApplicationID,
	forward Forward,
	out Outcome,
	none error,
) Outcome {
	home, err := s.Homes.Home(ctx, app)
	if err != nil {
		return out.fail(none)
	}
	home, number, err := s.Homes.Claim(ctx, app, home, nil)
	if err != nil {
		return out.fail(err)
	}
	out.Home = home
	if done, over := s.over(ctx, out, claim{home: home, number: number}); over {
		return done
	}
	try := Try{Member: home, Claim: number, Claimed: true}
	try.Verdict, try.Err = forward(ctx, home, number)
	out.Tries = append(out.Tries, try)
	if try.Verdict == Accepted {
		return out
	}
	return out.fail(none)
}

// hopeless reports whether every other member would reject the submission too.
func hopeless(t Try) bool { return t.Verdict == Refused && errors.Is(t.Err, creel.ErrInvalidRequest) }

func membersOf(v *subcluster.View) []subcluster.Status {
	if v == nil {
		return nil
	}
	return v.Members
}

func (o Outcome) fail(err error) Outcome {
	o.Err = err
	return o
}

// worst returns the error after every member was tried. A member's rejection is more useful than the error that no
// member is left. A rejection of kind creel.ErrUnavailable does not count: the same submission may succeed soon.
func (o Outcome) worst(none error) error {
	for _, t := range o.Tries {
		if t.Verdict == Refused && t.Err != nil && !errors.Is(t.Err, creel.ErrUnavailable) {
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

func noView() error {
	return &creel.Error{
		Kind:       creel.ErrUnavailable,
		What:       "no view of the federation yet",
		Why:        "the router has not read the state store",
		Try:        "try again in a moment",
		RetryAfter: time.Second,
	}
}

func unconfirmed(app creel.ApplicationID, home creel.SubclusterID, why error) error {
	return &creel.Error{
		Kind:       creel.ErrUnavailable,
		What:       fmt.Sprintf("submission of %s is not confirmed", app),
		Why:        fmt.Sprintf("its home %s did not answer and may run it: %v", home, why),
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
