// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/moves"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// movesEvery is the time between two rounds of a router that moves applications, and movesTime the longest duration
// of one.
const (
	movesEvery = 5 * time.Second
	movesTime  = 2 * time.Minute
)

// movedApp is the data that moves with an application from one home to the next.
type movedApp struct {
	message *pb.ApplicationSubmissionContextProto
	user    string
	since   time.Time
	left    time.Duration
}

// moveLoop starts the loop in which a router moves waiting applications. Its lease is drawn, not enforced: sometimes
// two routers carry out the same move.
func (r *gateway) moveLoop() {
	w := r.w
	if w.cfg.Faults == nil || w.cfg.Faults.Moves == 0 {
		return
	}
	t := &task{r: r}
	loop := moves.New(moves.Config[movedApp]{
		Store: storeDocuments{t},
		View:  func() *subcluster.View { return r.view },
		Mover: router.Mover[movedApp]{
			Homes: homes{t}, Disown: t.disown, Hold: t.hold, Release: t.releaseHold, Drop: t.dropHeld,
			Submit: t.submitHeld, Now: func() time.Time { return w.now },
		},
		Lead: func(ctx context.Context) (context.Context, func(), bool) {
			return ctx, func() {}, w.moving.IntN(len(w.routers)) == 0
		},
		Choose: func(_ context.Context, s moves.Situation) ([]moves.Record, error) { return r.choose(t, s) },
		Held:   func(_ context.Context, m *subcluster.Status) ([]moves.Hold, error) { return t.held(m.ID) },
	})
	var round func()
	round = func() {
		w.start(r.host, movesTime, func(f *flow) {
			t.flow = f
			f.between = func() bool { return w.dies(r) }
			_ = loop.Round(f) // the store's outage passes
		}, func() { w.on(r.host, movesEvery, round) })
	}
	w.on(r.host, movesEvery, round)
}

// choose selects applications to move: those that wait in drained members, and those that wait elsewhere if other
// members have free capacity. The limits are the daemons', except that more applications are moved, after a shorter
// time.
func (r *gateway) choose(t *task, s moves.Situation) (out []moves.Record, err error) {
	in := rebalancer.MoveInput{View: s.View, Now: s.Now, Drained: map[creel.SubclusterID]string{}}
	in.Excludes = func(q creel.QueuePath, id creel.SubclusterID) bool { return r.policy(q).Excludes(s.View, id) }
	for i := range s.View.Members {
		m := &s.View.Members[i]
		if !m.State.Alive() || m.Load.Metrics.AppsPending+m.Load.Metrics.AppsRunning == 0 {
			continue
		}
		if strings.HasPrefix(m.Draining, "move") {
			in.Drained[m.ID] = string(m.ID) + " is drained"
		}
		waiting, err := t.waiting(m.ID)
		if err != nil {
			continue
		}
		in.Waiting = append(in.Waiting, waiting...)
	}
	for _, x := range s.Moves {
		in.Past = append(in.Past, rebalancer.PastMove{
			Application: x.Application, From: x.From, To: x.To, Queue: x.Queue, At: x.Asked, Under: true,
		})
	}
	for _, x := range s.Last {
		in.Past = append(in.Past, rebalancer.PastMove{
			Application: x.Application, From: x.From, To: x.To, Queue: x.Queue, At: x.At,
		})
	}
	terms := rebalancer.MoveTerms{
		Loaded: true, PerMinute: 100, QueuePercent: 100, DeadBand: -1, Again: 30 * time.Second,
	}
	chosen, _ := rebalancer.ChooseMoves(&in, terms)
	for _, c := range chosen {
		out = append(out, moves.Record{
			HomeMove: router.HomeMove{Application: c.Application, From: c.From, To: c.To, Why: c.Why},
			Queue:    c.Queue, By: "sim",
		})
	}
	if r.w.moving.IntN(3) == 0 && len(s.Moves) > 0 {
		x := s.Moves[r.w.moving.IntN(len(s.Moves))]
		r.w.audit.fault("moves given up")
		_, err = moves.GiveUp(t.flow, storeDocuments{t}, x.Application, "a user wants it")
	}
	return out, err
}

// storeDocuments is the store's documents; each call is a step.
type storeDocuments struct{ t *task }

func (d storeDocuments) PutDocument(_ context.Context, x statestore.DocumentWrite) (statestore.Document, error) {
	w := d.t.r.w
	return step(d.t, w.storeAt, func(reply func(statestore.Document, error)) {
		reply(atStore(w, true, func() (statestore.Document, error) { return w.store.PutDocument(w.storeClock(), x) }))
	})
}

func (d storeDocuments) DocumentOf(
	_ context.Context, class, name string, queues []string,
) (statestore.Document, error) {
	w := d.t.r.w
	return step(d.t, w.storeAt, func(reply func(statestore.Document, error)) {
		reply(atStore(w, false, func() (statestore.Document, error) { return w.store.DocumentOf(class, name, queues) }))
	})
}

func (d storeDocuments) Documents(_ context.Context, class string) (statestore.DocumentSet, error) {
	w := d.t.r.w
	return step(d.t, w.storeAt, func(reply func(statestore.DocumentSet, error)) {
		reply(atStore(w, false, func() (statestore.DocumentSet, error) {
			return w.store.Documents(w.storeClock(), class)
		}))
	})
}

var errCannotHold = &creel.Error{Kind: creel.ErrInvalidRequest, What: "this ResourceManager holds no applications"}

func (t *task) hold(
	_ context.Context,
	at creel.SubclusterID,
	app creel.ApplicationID,
	claim int64,
	why string,
) (movedApp, error) {
	c := t.r.w.cluster(at)
	return step(t, c.host, func(reply func(movedApp, error)) {
		if c.hadoop {
			reply(movedApp{}, errCannotHold)
			return
		}
		c.post(func(m *rm.Machine, now time.Time) func() {
			held, err := m.Hold(now, app, claim, why)
			c.owner.Hold(func() {
				if err != nil {
					reply(movedApp{}, err)
					return
				}
				c.w.audit.held(c, app, claim)
				reply(movedApp{codec.Moving(&held), held.App.User, held.App.Submitted, held.Left}, nil)
			})
			return nil
		})
	})
}

func (t *task) releaseHold(_ context.Context, at creel.SubclusterID, app creel.ApplicationID, claim int64) error {
	return t.moveAway(at, func(m *rm.Machine, now time.Time) error { return m.ReleaseHold(now, app, claim) })
}

func (t *task) dropHeld(_ context.Context, at creel.SubclusterID, app creel.ApplicationID, claim int64) error {
	err := t.moveAway(at, func(m *rm.Machine, now time.Time) error { return m.DropHeld(now, app, claim) })
	if err == nil {
		t.r.w.audit.fault("waiting applications moved")
	}
	return err
}

func (t *task) moveAway(at creel.SubclusterID, do func(*rm.Machine, time.Time) error) error {
	c := t.r.w.cluster(at)
	_, err := step(t, c.host, func(reply func(bool, error)) {
		if c.hadoop {
			reply(false, errCannotHold)
			return
		}
		c.post(func(m *rm.Machine, now time.Time) func() {
			err := do(m, now)
			c.owner.Hold(func() { reply(err == nil, err) })
			return nil
		})
	})
	return err
}

// submitHeld submits a held application to its next home, in its user's name.
func (t *task) submitHeld(
	_ context.Context,
	to creel.SubclusterID,
	_ creel.ApplicationID,
	held movedApp,
	claim int64,
) (router.Verdict, error) {
	return t.forward(to, held.user, held.message, claim)
}

// waiting lists the applications that wait for their AM's container in a member.
func (t *task) waiting(at creel.SubclusterID) ([]rebalancer.WaitingApplication, error) {
	c := t.r.w.cluster(at)
	return step(t, c.host, func(reply func([]rebalancer.WaitingApplication, error)) {
		c.post(func(m *rm.Machine, _ time.Time) func() {
			var out []rebalancer.WaitingApplication
			for v := range m.Apps {
				if !v.Unmanaged && v.State == creel.AppAccepted && v.Containers == 0 {
					out = append(out, rebalancer.WaitingApplication{
						Application: v.ID, Home: c.id, Queue: v.Queue, Submitted: v.Submitted,
						Label: v.AMLabel,
					})
				}
			}
			return func() { reply(out, nil) }
		})
	})
}

// held lists a member's held applications.
func (t *task) held(at creel.SubclusterID) ([]moves.Hold, error) {
	c := t.r.w.cluster(at)
	return step(t, c.host, func(reply func([]moves.Hold, error)) {
		c.post(func(m *rm.Machine, _ time.Time) func() {
			var out []moves.Hold
			for v := range m.Apps {
				if v.Held.Claim > 0 {
					out = append(out, moves.Hold{Application: v.ID, Claim: v.Held.Claim})
				}
			}
			return func() { reply(out, nil) }
		})
	})
}

// held checks a ResourceManager's answer to a router that it holds an application. The application must still be held
// after a restart, and must not have started there.
func (a *auditor) held(c *cluster, id creel.ApplicationID, claim int64) {
	app := a.apps[id]
	app.moves = true
	r, kept := c.kept.app(id)
	over := c.kept.disowned(id) >= claim || r.Released >= claim // at the time of the answer
	a.check(over || kept && r.Hold.Claim >= claim, "%s reports that it holds %s, which its journal does not know", c.id, id)
	// Another router may hold it again at the old home while it starts at its new home.
	a.check(a.forgetful() || app.home == nil || app.home.index != c.index,
		"%s is held in %s for a move, and has begun there", id, c.id)
}

// movesOf returns the random source of moves in a seed.
func movesOf(seed uint64) *rand.Rand { return source(seed, "moves of applications") }
