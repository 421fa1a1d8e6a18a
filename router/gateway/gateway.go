// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// Config of a Gateway. View, Policy, Homes and Pool are required.
type Config struct {
	View   func() *subcluster.View
	Policy func(view *subcluster.View, queue creel.QueuePath) policies.Policy
	Homes  router.Homes
	Pool   *remote.Pool
	Known  Known         // asks a member whether it knows an application; the RPC door supplies it
	Disown router.Disown // has a member refuse an application; the RPC door supplies it
	// Kept is how many applications' homes and decisions are remembered, 10,000
	// if zero. Homes beyond are asked of the store.
	Kept int
	Seed uint64
	// SubmitTime bounds the calls of a submission to all members that it
	// tries; 0: the caller's context alone does.
	SubmitTime time.Duration
	// MaxTries bounds the members that a submission is offered to; 0 is all.
	MaxTries int
	Log      *slog.Logger // slog.Default if nil
}

// Known asks a member whether it knows an application. An error means that it
// could not be asked.
type Known func(ctx context.Context, member creel.SubclusterID, app creel.ApplicationID) (bool, error)

// Gateway is safe for concurrent use.
type Gateway struct {
	conf      Config
	submitter router.Submitter
	assumed   assumed
	kept      memory
	counts    Counts
	seed      atomic.Uint64

	unlisted     sync.Map // names of fields that no merge rule lists
	unlistedKept atomic.Int64
}

// Counts are running totals since the start.
type Counts struct {
	Submitted, Accepted, Failed, Moved, Partial, Killed atomic.Int64
	Unlisted                                            atomic.Int64 // fields that no merge rule lists
}

// New makes a gateway. It starts nothing.
func New(conf Config) *Gateway {
	if conf.Kept <= 0 {
		conf.Kept = 10_000
	}
	if conf.Log == nil {
		conf.Log = slog.Default()
	}
	g := &Gateway{conf: conf, kept: newMemory(conf.Kept)}
	g.seed.Store(conf.Seed)
	g.submitter = router.Submitter{
		View:     conf.View,
		Policy:   conf.Policy,
		Homes:    conf.Homes,
		Disown:   conf.Disown,
		MaxTries: conf.MaxTries,
		Rand:     g.random,
	}
	return g
}

// random gives each submission a source of its own: no lock is shared.
func (g *Gateway) random() *rand.Rand {
	return rand.New(rand.NewPCG(g.conf.Seed, g.seed.Add(1)))
}

// View is the federation as this router sees it now; it may be nil at first.
func (g *Gateway) View() *subcluster.View { return g.conf.View() }

// Counts are the running totals.
func (g *Gateway) Counts() *Counts { return &g.counts }

// Member is the client of a member of the view.
func (g *Gateway) Member(id creel.SubclusterID) (*remote.Member, error) {
	status, ok := g.View().Member(id)
	if !ok {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: fmt.Sprintf("subcluster %s is not in the view", id),
			Why:  "it never registered, or was removed",
			Try:  "see `creel subcluster list`",
		}
	}
	return g.conf.Pool.Member(status), nil
}

// Submit finds a home for a submission and forwards it there.
func (g *Gateway) Submit(
	ctx context.Context,
	sub policies.Submission,
	forward func(ctx context.Context, m *remote.Member, claim int64) error,
) router.Outcome {
	g.counts.Submitted.Add(1)
	began := time.Now()
	sub.Assumed = g.assumed.of(g.View())
	out := g.submitter.Submit(ctx, sub, func(ctx context.Context, id creel.SubclusterID, claim int64) (router.Verdict, error) {
		m, err := g.Member(id)
		if err != nil {
			return router.Unclear, err
		}
		if g.conf.SubmitTime > 0 { // of the members; how long a claim waits is the store's own
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, began.Add(g.conf.SubmitTime))
			defer cancel()
		}
		err = forward(ctx, m, claim)
		return verdict(err), err
	})
	if out.Err == nil {
		g.counts.Accepted.Add(1)
		g.assumed.add(g.View(), out.Home, sub.Size)
	} else {
		g.counts.Failed.Add(1)
	}
	if len(out.Tries) > 1 {
		g.counts.Moved.Add(1)
	}
	g.kept.put(out)
	return out
}

// verdict reads from an error what became of a call.
func verdict(err error) router.Verdict {
	var silent *remote.Unavailable
	var answered *hrpc.RemoteError
	var status *remote.StatusError
	switch {
	case err == nil:
		return router.Accepted
	case errors.As(err, &silent) && !silent.Sent:
		return router.NotSent
	case errors.As(err, &answered):
		if answered.Fatal {
			return router.NotSent // the connection was refused before the call was served
		}
		return router.Refused
	case errors.As(err, &status):
		if status.Code >= 500 && status.Code != 503 {
			return router.Unclear
		}
		return router.Refused
	}
	return router.Unclear
}

// Home finds the member an application lives at: in memory, in the store, or,
// for one that was submitted past the routers, by asking everyone.
func (g *Gateway) Home(ctx context.Context, app creel.ApplicationID) (*remote.Member, error) {
	if id, ok := g.kept.home(app); ok {
		if m, err := g.Member(id); err == nil {
			return m, nil
		}
	}
	id, err := g.conf.Homes.Home(ctx, app)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		return g.search(ctx, app, err)
	}
	if err != nil {
		return nil, err
	}
	g.kept.learn(app, id)
	return g.Member(id)
}

// search asks every member for an application nobody claimed.
func (g *Gateway) search(ctx context.Context, app creel.ApplicationID, notFound error) (*remote.Member, error) {
	parts := Ask(
		ctx,
		g,
		func(ctx context.Context, m *remote.Member) (bool, error) { return g.conf.Known(ctx, m.ID, app) },
	)
	silent := 0
	for _, p := range parts {
		switch {
		case p.Err != nil:
			silent++
		case p.Value:
			return g.Member(p.Member)
		}
	}
	if silent > 0 {
		_, missing := router.Present(parts)
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: fmt.Sprintf("%s cannot be found now", app),
			Why: "no record of it, and not every subcluster answered: " + router.MissingText(
				missing,
			),
			Try:        "try again in a moment",
			RetryAfter: time.Second,
		}
	}
	return nil, notFound
}

// Weigh adds the members' sizes in memory, as their loads report them.
func Weigh[T any](g *Gateway, present []router.Part[T]) []router.Weighed[T] {
	view := g.View()
	out := make([]router.Weighed[T], len(present))
	for i, p := range present {
		out[i] = router.Weighed[T]{Member: p.Member, Value: p.Value}
		if m, ok := view.Member(p.Member); ok {
			out[i].Size = float64(m.Load.Metrics.TotalMB)
		}
	}
	return out
}

// Unlisted counts a field of a member's answer that has no merge rule, so that
// the first member's stays, and logs it at its first sight.
func (g *Gateway) Unlisted(typ, field string) {
	g.counts.Unlisted.Add(1)
	name := typ + "." + field
	if _, seen := g.unlisted.Load(name); seen || g.unlistedKept.Load() >= unlistedMost {
		return
	}
	if _, seen := g.unlisted.LoadOrStore(name, true); !seen {
		g.unlistedKept.Add(1)
		g.conf.Log.Warn("a field that no merge rule lists: the first subcluster's is kept", "field", name,
			"see", "docs/reference/merging.md")
	}
}

// unlistedMost bounds the names of fields that are remembered.
const unlistedMost = 1000

// Forget drops what is remembered of an application's home, after its home
// said that it does not know it.
func (g *Gateway) Forget(app creel.ApplicationID) { g.kept.forget(app) }

// HomeSeen is the home of an application as remembered, without I/O.
func (g *Gateway) HomeSeen(app creel.ApplicationID) (creel.SubclusterID, bool) {
	return g.kept.home(app)
}

// Decision is what this router remembers of a submission.
func (g *Gateway) Decision(app creel.ApplicationID) (router.Outcome, bool) {
	return g.kept.outcome(app)
}

// Ask puts a question to every member that may answer, all at once, and gives
// an answer or an error for each, in order of id. Members that are lost are
// answered for without being called: what they had is missing, and said so.
func Ask[T any](
	ctx context.Context,
	g *Gateway,
	call func(ctx context.Context, m *remote.Member) (T, error),
) []router.Part[T] {
	view := g.View()
	if view == nil {
		return nil
	}
	parts := make([]router.Part[T], 0, len(view.Members))
	for i := range view.Members {
		if view.Members[i].State != subcluster.StateDeregistered {
			parts = append(parts, router.Part[T]{Member: view.Members[i].ID})
		}
	}
	var wait sync.WaitGroup
	for i := range parts {
		status, _ := view.Member(parts[i].Member)
		if status.State == subcluster.StateLost {
			parts[i].Err = fmt.Errorf("lost: %s", status.Reason)
			continue
		}
		m := g.conf.Pool.Member(status)
		wait.Go(func() { parts[i].Value, parts[i].Err = call(ctx, m) })
	}
	wait.Wait()
	if slices.ContainsFunc(parts, func(p router.Part[T]) bool { return p.Err != nil }) {
		g.counts.Partial.Add(1)
	}
	return parts
}

// Any asks members one after another, in random order, until one answers:
// for questions that each can answer for all. A refusal is an answer.
func Any[T any](
	ctx context.Context,
	g *Gateway,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (T, error) {
	var none T
	view := g.View()
	ids := view.Active()
	if len(ids) == 0 {
		return none, &creel.Error{
			Kind:       creel.ErrNoSubcluster,
			What:       "no active subcluster",
			Try:        "see `creel subcluster list`",
			RetryAfter: time.Second,
		}
	}
	g.random().Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var err error
	for _, id := range ids {
		status, _ := view.Member(id)
		var v T
		v, err = call(ctx, g.conf.Pool.Member(status))
		var silent *remote.Unavailable
		if err == nil || !errors.As(err, &silent) {
			return v, err
		}
	}
	return none, err
}
