// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// forwardTime bounds a call of a router to a member, submitTime a submission.
const (
	forwardTime = 5 * time.Second
	submitTime  = 30 * time.Second
)

// gateway is a router: router.Submitter with the calls it needs.
type gateway struct {
	*host
	watcher
	w       *World
	running []*task
	tries   uint64
}

func newRouter(w *World, index int) *gateway {
	r := &gateway{w: w, host: w.host(fmt.Sprintf("router %d", index+1), outside)}
	r.watcher = watcher{w: w, at: r.host}
	return r
}

func (r *gateway) start() { r.watcher.start() }

// drop ends all submissions where they are.
func (r *gateway) drop() {
	running := r.running
	r.running = nil
	for _, t := range running {
		t.kill()
	}
}

// newApplication has a member give out an application id.
func (r *gateway) newApplication(reply func(creel.ApplicationID, error)) {
	ids := r.view.Active()
	if len(ids) == 0 {
		reply(creel.ApplicationID{}, &creel.Error{Kind: creel.ErrNoSubcluster, What: "no active subcluster"})
		return
	}
	c := r.member(ids[r.w.rnd.IntN(len(ids))])
	call(r.w, r.host, c.host, forwardTime, func(reply func(creel.ApplicationID, error)) {
		c.nextApp++
		reply(creel.ApplicationID{ClusterTimestamp: c.start.UnixMilli(), ID: c.nextApp}, nil)
	}, reply)
}

func (r *gateway) member(id creel.SubclusterID) *cluster {
	for _, c := range r.w.clusters {
		if c.id == id {
			return c
		}
	}
	return nil
}

// task is a submission on its way through a router. It is a coroutine: it
// stands still while it waits for an answer, and virtual time passes.
type task struct {
	r       *gateway
	until   time.Time
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	wait    func(resume func()) // what it waits for
	dead    bool
	outcome router.Outcome
	reply   func(router.Outcome)
}

// submit begins a submission.
func (r *gateway) submit(s *submission, app creel.ApplicationID, reply func(router.Outcome)) {
	t := &task{r: r, until: r.w.now.Add(submitTime), reply: reply}
	r.running = append(r.running, t)
	r.tries++
	seed := r.tries
	core := router.Submitter{
		View:   func() *subcluster.View { return r.view },
		Policy: func(_ *subcluster.View, q creel.QueuePath) policies.Policy { return r.policy(q) },
		Homes:  homes{t}, Known: t.known,
		Rand: func() *rand.Rand { return rand.New(rand.NewPCG(r.w.cfg.Seed+uint64(r.number), seed)) },
	}
	job := &r.w.cfg.Jobs[s.job]
	what := policies.Submission{
		Application: app,
		Name:        job.Name,
		User:        job.User,
		Type:        "MAPREDUCE",
		Queue:       job.Queue,
		Size:        masterSize,
	}
	request := &rm.Submission{
		ID:      app,
		User:    job.User,
		Name:    job.Name,
		Type:    "MAPREDUCE",
		Queue:   string(job.Queue),
		Context: s,
		Master: rm.Ask{
			ResourceName:        "*",
			Resource:            masterSize,
			Count:               1,
			ExecutionType:       creel.Guaranteed,
			AllocationRequestID: -1,
		},
	}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		t.outcome = core.Submit(
			virtual{t},
			what,
			func(_ context.Context, id creel.SubclusterID) (router.Verdict, error) { return t.forward(id, request) },
		)
	})
	t.advance()
}

var masterSize = creel.NewResource(512, 1)

// advance lets the coroutine go on to its next wait, or to its end.
func (t *task) advance() {
	if t.dead {
		return
	}
	if _, more := t.next(); more {
		t.wait(t.advance)
		return
	}
	t.dead = true
	t.r.running = slices.DeleteFunc(t.r.running, func(o *task) bool { return o == t })
	t.reply(t.outcome)
}

// kill ends the coroutine where it stands: its router is gone.
func (t *task) kill() {
	t.dead = true
	t.stop()
}

// step is one step of a submission, seen from within the coroutine: something
// asked and its answer awaited. Before and after each, the router may die.
func step[T any](t *task, to *host, serve func(reply func(T, error))) (out T, err error) {
	if t.dead {
		return out, errReset
	}
	w := t.r.w
	t.wait = func(resume func()) {
		if w.dies(t.r) {
			return
		}
		call(w, t.r.host, to, min(forwardTime, t.until.Sub(w.now)), serve, func(v T, e error) {
			if w.dies(t.r) {
				return
			}
			out, err = v, e
			resume()
		})
	}
	if !t.yield(struct{}{}) {
		t.dead = true
		return out, errReset
	}
	return out, err
}

// virtual is a submission's context: its deadline is in virtual time.
type virtual struct{ t *task }

func (c virtual) Deadline() (time.Time, bool) { return c.t.until, true }
func (c virtual) Done() <-chan struct{}       { return nil } // nobody selects on it here
func (c virtual) Value(any) any               { return nil }

func (c virtual) Err() error {
	switch {
	case c.t.dead:
		return context.Canceled
	case !c.t.r.w.now.Before(c.t.until):
		return context.DeadlineExceeded
	}
	return nil
}

// forward hands the submission to a member, and reads what became of it as
// router/gateway does.
func (t *task) forward(id creel.SubclusterID, s *rm.Submission) (router.Verdict, error) {
	c := t.r.member(id)
	_, err := step(t, c.host, func(reply func(bool, error)) { c.submit(s, reply) })
	var silent *netError
	switch {
	case err == nil:
		return router.Accepted, nil
	case errors.As(err, &silent) && !silent.sent:
		return router.NotSent, err
	case errors.As(err, &silent):
		return router.Unclear, err
	}
	return router.Refused, err
}

func (t *task) known(_ context.Context, id creel.SubclusterID, app creel.ApplicationID) (bool, error) {
	c := t.r.member(id)
	_, err := step(t, c.host, func(reply func(bool, error)) {
		_, err := c.app(app)
		reply(err == nil, err)
	})
	switch {
	case err == nil:
		return true, nil
	case isNotFound(err):
		return false, nil
	}
	return false, err
}

// homes are the store's, each call a step.
type homes struct{ t *task }

func (h homes) Claim(
	_ context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
) (creel.SubclusterID, bool, error) {
	w := h.t.r.w
	type claim struct {
		home  creel.SubclusterID
		fresh bool
	}
	c, err := step(h.t, w.storeAt, func(reply func(claim, error)) {
		home, fresh, err := w.store.Claim(w.now, app, member)
		reply(claim{home, fresh}, err)
	})
	return c.home, c.fresh, err
}

func (h homes) Move(
	_ context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
) (creel.SubclusterID, error) {
	w := h.t.r.w
	return step(h.t, w.storeAt, func(reply func(creel.SubclusterID, error)) {
		is, _, err := w.store.Move(w.now, app, from, to)
		reply(is, err)
	})
}

func (h homes) Home(_ context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	w := h.t.r.w
	return step(h.t, w.storeAt, func(reply func(creel.SubclusterID, error)) { reply(w.store.Home(w.now, app)) })
}
