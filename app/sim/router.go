// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// forwardTime limits a router's call to a member, submitTime a submission.
const (
	forwardTime = 5 * time.Second
	submitTime  = 30 * time.Second
)

// gateway is a router: router.Submitter with its calls.
type gateway struct {
	*host
	watcher
	w       *World
	tries   uint64
	memory  *router.Memory
	assumed router.AssumedLoad
	runs    map[creel.SubclusterID]memberRun // of members that cannot disown
}

func newRouter(w *World, index int) *gateway {
	r := &gateway{w: w, host: w.host(fmt.Sprintf("router %d", index+1), outside)}
	r.watcher = watcher{w: w, at: r.host}
	return r
}

// remembered is the number of homes that a router remembers: few, so that it forgets some.
const remembered = 64

func (r *gateway) start() {
	r.memory, r.assumed = router.NewMemory(remembered, remembered), router.AssumedLoad{}
	r.runs = map[creel.SubclusterID]memberRun{}
	r.watcher.start()
	r.moveLoop()
	r.intentLoop()
}

// newApplication requests an application id from a member.
func (r *gateway) newApplication(reply func(creel.ApplicationID, error)) {
	ids := r.view.Active()
	if len(ids) == 0 {
		reply(creel.ApplicationID{}, &creel.Error{Kind: creel.ErrNoSubcluster, What: "no active subcluster"})
		return
	}
	c := r.w.cluster(ids[r.w.rnd.IntN(len(ids))])
	call(r.w, r.host, c.host, forwardTime, func(reply func(creel.ApplicationID, error)) {
		c.nextApp++
		reply(creel.ApplicationID{ClusterTimestamp: c.start.UnixMilli(), ID: c.nextApp}, nil)
	}, reply)
}

// task is a submission in progress at a router.
type task struct {
	r    *gateway
	flow *flow
	app  creel.ApplicationID
}

// submit starts a submission.
func (r *gateway) submit(s *submission, app creel.ApplicationID, reply func(router.Outcome)) {
	r.tries++
	seed, t := r.tries, &task{r: r, app: app}
	core := router.Submitter{
		View:        func() *subcluster.View { return r.view },
		Policy:      func(_ *subcluster.View, q creel.QueuePath) policies.Policy { return r.policy(q) },
		Homes:       homes{t},
		Disown:      t.disown,
		Acceptances: homes{t}, Life: t.life,
		Rand: func() *rand.Rand { return rand.New(rand.NewPCG(r.w.cfg.Seed+uint64(r.number), seed)) },

		UnclearWait: router.UnclearWait,
		Now:         func() time.Time { return r.w.now },
		Paused:      func() bool { return r.slept > 0 && r.w.now.Sub(r.paused) < router.SocketLife },
	}
	job := &r.w.cfg.Jobs[s.job]
	what := policies.Submission{
		Application: app,
		Name:        job.Name,
		User:        job.User,
		Type:        typeOf(s.job),
		Queue:       job.Queue,
		Size:        amSize,
		Assumed:     r.assumed.Write,
	}
	request := &pb.ApplicationSubmissionContextProto{
		ApplicationId:                           pb.FromApplicationID(app),
		ApplicationName:                         &job.Name,
		ApplicationType:                         new(typeOf(s.job)),
		Queue:                                   new(string(job.Queue)),
		Resource:                                pb.FromResource(amSize),
		KeepContainersAcrossApplicationAttempts: new(r.w.keeps(s.job)),
		AmContainerSpec: &pb.ContainerLaunchContextProto{Environment: []*pb.StringStringMapProto{
			{Key: new(envJob), Value: new(strconv.Itoa(s.job))},
		}},
	}
	var outcome router.Outcome
	r.w.start(r.host, submitTime, func(f *flow) {
		t.flow = f
		f.between = func() bool { return r.w.dies(r) }
		outcome = core.Submit(
			f,
			what,
			func(_ context.Context, id creel.SubclusterID, claim int64) (router.Verdict, error) {
				return t.forward(id, job.User, request, claim)
			},
		)
	}, func() {
		r.memory.Put(outcome)
		if outcome.Err == nil {
			r.assumed.Add(r.view, outcome.Home, amSize)
		}
		if home, ok := r.memory.Home(app); ok && !r.w.audit.apps[app].moves {
			r.w.audit.homeOf(app, home, r.name)
		}
		reply(outcome)
	})
}

var amSize = creel.NewResource(512, 1)

// step is one step of a submission: a call and the wait for its answer. The router may die before and after it.
func step[T any](t *task, to *host, serve func(reply func(T, error))) (T, error) {
	return ask(t.flow, to, forwardTime, serve)
}

// forward submits to a member, and interprets the outcome like router/server.
func (t *task) forward(
	id creel.SubclusterID,
	user string,
	app *pb.ApplicationSubmissionContextProto,
	claim int64,
) (router.Verdict, error) {
	c := t.r.w.cluster(id)
	t.r.w.fallsAsleep(t, c)
	_, err := step(t, c.host, func(reply func(bool, error)) { c.submit(user, app, claim, reply) })
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

func (t *task) disown(
	_ context.Context,
	id creel.SubclusterID,
	app creel.ApplicationID,
	claim int64,
) (router.Standing, error) {
	c := t.r.w.cluster(id)
	return step(t, c.host, func(reply func(router.Standing, error)) { c.disown(app, claim, reply) })
}

// homes is the store's homes; each call is a step.
type homes struct{ t *task }

func (h homes) Claim(
	_ context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (creel.SubclusterID, int64, error) {
	w := h.t.r.w
	type claim struct {
		home   creel.SubclusterID
		number int64
	}
	c, err := step(h.t, w.storeAt, func(reply func(claim, error)) {
		reply(placing(w, true, func() (claim, error) {
			home, number, err := w.store.Claim(w.storeClock(), app, member, placement)
			return claim{home, number}, err
		}))
	})
	return c.home, c.number, err
}

func (h homes) Move(
	_ context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	w := h.t.r.w
	return step(h.t, w.storeAt, func(reply func(creel.SubclusterID, error)) {
		reply(placing(w, true, func() (creel.SubclusterID, error) {
			is, _, err := w.store.Move(w.storeClock(), app, from, to, number, placement)
			return is, err
		}))
	})
}

func (h homes) Absent(
	_ context.Context,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (time.Duration, error) {
	w := h.t.r.w
	return step(h.t, w.storeAt, func(reply func(time.Duration, error)) {
		reply(placing(w, true, func() (time.Duration, error) {
			return w.store.Absent(w.storeClock(), app, home, number, surely)
		}))
	})
}

func (h homes) Ended(_ context.Context, app creel.ApplicationID) (time.Time, error) {
	w := h.t.r.w
	return step(h.t, w.storeAt, func(reply func(time.Time, error)) {
		reply(placing(w, false, func() (time.Time, error) { return w.store.Ended(w.storeClock(), app) }))
	})
}

func (h homes) Home(_ context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	w := h.t.r.w
	return step(h.t, w.storeAt, func(reply func(creel.SubclusterID, error)) {
		reply(placing(w, false, func() (creel.SubclusterID, error) { return w.store.Home(w.storeClock(), app) }))
	})
}
