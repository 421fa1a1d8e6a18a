// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/hrpc"
)

// letter is what lies in a session's mailbox: an event, or a look at the session.
type letter struct {
	event amrmproxy.Event
	look  func(*amrmproxy.Session)
	from  *Caller
	reply func(proto.Message, error)
}

// driver is the goroutine of one session.
type driver struct {
	p       *Proxy
	attempt creel.AttemptID
	home    creel.SubclusterID
	box     chan letter
	gone    chan struct{} // closed when the goroutine has ended
	before  []*driver     // of earlier attempts of the application, in this process
	log     *slog.Logger

	session  *amrmproxy.Session
	store    record
	cred     *hrpc.Credential
	calls    map[uint64]func(proto.Message, error)
	call     uint64
	seen     *picture
	queue    creel.QueuePath
	heard    time.Time
	asking   bool // home is being asked whether the application is over
	over     bool
	ended    error // why there is no session
	cancel   context.CancelFunc
	children sync.WaitGroup
}

func (d *driver) post(l letter) {
	select {
	case d.box <- l:
	case <-d.gone:
	}
}

func (d *driver) run(ctx context.Context) {
	ctx, d.cancel = context.WithCancel(ctx)
	defer func() {
		d.cancel()
		d.p.forget(d)
		close(d.gone)
		d.children.Wait()
		d.p.cfg.Masters.Forget(d.attempt)
		d.refuse()
	}()
	if err := d.open(ctx); err != nil {
		d.log.Warn("no session", "error", err)
		d.ended = err
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-d.box:
			d.take(ctx, l)
			for more := true; more; { // what came together is taken together
				select {
				case l := <-d.box:
					d.take(ctx, l)
				default:
					more = false
				}
			}
		case <-timer.C:
			if d.over {
				return
			}
			d.step(ctx, amrmproxy.Tick{})
			d.askHome(ctx)
		}
		if d.over {
			timer.Reset(d.p.cfg.Linger)
			continue
		}
		timer.Reset(time.Until(d.session.Wake()))
	}
}

// refuse answers the calls that nobody else will answer: the proxy stops, or
// the session could not begin.
func (d *driver) refuse() {
	err := d.ended
	if err == nil {
		err = &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "the proxy is stopping",
			Try:  "try again, or another proxy",
		}
	}
	for _, reply := range d.calls {
		reply(nil, err)
	}
	for {
		select {
		case l := <-d.box:
			if l.reply != nil {
				l.reply(nil, err)
			}
		default:
			return
		}
	}
}

// open takes up what the store has of the application and makes the session.
func (d *driver) open(ctx context.Context) error {
	for _, other := range d.before {
		// An earlier attempt of the same application: it must not write any
		// more when we read.
		other.cancel()
		select {
		case <-other.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d.before = nil
	d.store = record{cfg: &d.p.cfg, attempt: d.attempt}
	known, err := d.store.load(ctx)
	if err != nil {
		return err
	}
	user := ""
	if known != nil {
		user = known.User
		if known.Attempt == d.attempt && known.Home != "" {
			d.home = known.Home
		}
	}
	d.session, err = amrmproxy.NewSession(
		amrmproxy.Options{Config: d.p.cfg.Session, Attempt: d.attempt, Home: d.home, User: user, Record: known,
			Where: d.p.cfg.Where, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))},
	)
	d.heard = time.Now()
	return err
}

func (d *driver) take(ctx context.Context, l letter) {
	if l.look != nil {
		l.look(d.session)
		return
	}
	if e, ok := l.event.(amrmproxy.FromAM); ok {
		d.heard = time.Now()
		d.cred = l.from.Credential
		d.call++
		e.Call = d.call
		d.calls[e.Call] = l.reply
		l.event = e
	}
	d.step(ctx, l.event)
}

// step shows the session what there is to see, then the event.
func (d *driver) step(ctx context.Context, e amrmproxy.Event) {
	now := time.Now()
	if seen := d.p.now(); seen != d.seen || d.session.Queue() != d.queue {
		d.seen, d.queue = seen, d.session.Queue()
		policy, _ := seen.book.For(d.queue)
		d.perform(ctx, d.session.Step(now, amrmproxy.Saw{View: seen.view, Policy: policy}))
	}
	d.perform(ctx, d.session.Step(now, e))
}

func (d *driver) perform(ctx context.Context, actions []amrmproxy.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case amrmproxy.Reply:
			d.answer(a)
		case amrmproxy.Send:
			d.send(ctx, a)
		case amrmproxy.Save:
			d.save(ctx, a)
		case amrmproxy.Launch:
			d.launch(ctx, a)
		case amrmproxy.Drop:
			d.drop(ctx, a)
		case amrmproxy.Done:
			d.log.Info("session over", "why", a.Why)
			d.over = true
		}
	}
}

func (d *driver) answer(a amrmproxy.Reply) {
	reply := d.calls[a.Call]
	delete(d.calls, a.Call)
	if reply == nil {
		return
	}
	switch {
	case a.Err != nil:
		d.p.count.errors.Add(1)
		reply(nil, a.Err)
	case a.Register != nil:
		reply(a.Register, nil)
	case a.Allocate != nil:
		reply(a.Allocate, nil)
	default:
		reply(a.Finish, nil)
	}
}

func (d *driver) send(ctx context.Context, a amrmproxy.Send) {
	to := To{Member: a.Member, Attempt: d.attempt, Credential: d.cred}
	if t := a.Token; t != nil {
		to.Credential = &hrpc.Credential{
			Identifier: t.GetIdentifier(),
			Password:   t.GetPassword(),
			Kind:       t.GetKind(),
			Service:    t.GetService(),
		}
	}
	d.p.count.calls.Add(1)
	d.children.Add(1)
	d.p.hands.Give(func() {
		defer d.children.Done()
		ctx, cancel := context.WithTimeout(ctx, d.p.cfg.CallTime)
		defer cancel()
		e := amrmproxy.Answered{Member: a.Member, Seq: a.Seq}
		switch m := d.p.cfg.Masters; {
		case a.Register != nil:
			e.Register, e.Err = m.Register(ctx, to, a.Register)
		case a.Allocate != nil:
			e.Allocate, e.Err = m.Allocate(ctx, to, a.Allocate)
		default:
			e.Finish, e.Err = m.Finish(ctx, to, a.Finish)
		}
		if e.Err != nil {
			d.p.count.callErrors.Add(1)
			d.log.Debug("a member did not answer well", "member", a.Member, "error", e.Err)
		}
		d.post(letter{event: e})
	})
}

func (d *driver) save(ctx context.Context, a amrmproxy.Save) {
	d.p.count.saves.Add(1)
	d.children.Go(func() { // the session has one Save under way at most, so d.store has one user
		err := d.store.save(ctx, a.Record)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return
			}
			d.log.Warn("spread not saved", "error", err)
			d.post(letter{event: amrmproxy.SaveFailed{Number: a.Number, Err: err}})
			return
		}
		d.post(letter{event: amrmproxy.Saved{Number: a.Number}})
	})
}

func (d *driver) launch(ctx context.Context, a amrmproxy.Launch) {
	d.p.count.launches.Add(1)
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.p.cfg.LaunchTime)
		defer cancel()
		e, err := d.p.cfg.Launcher.Launch(ctx, a)
		if err != nil {
			d.p.count.launchFailures.Add(1)
			d.log.Warn("twin not launched", "member", a.Member, "error", err)
			d.post(letter{event: amrmproxy.LaunchFailed{Member: a.Member, Err: err}})
			return
		}
		d.log.Info("twin launched", "member", a.Member, "twin", e.Attempt.String())
		d.post(letter{event: e})
	})
}

func (d *driver) drop(ctx context.Context, a amrmproxy.Drop) {
	d.p.count.drops.Add(1)
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.p.cfg.CallTime)
		defer cancel()
		err := d.p.cfg.Launcher.Drop(ctx, a)
		if err != nil {
			d.log.Warn("twin not killed", "member", a.Member, "error", err)
		}
		d.post(letter{event: amrmproxy.Dropped{Member: a.Member, Err: err}})
	})
}

// askHome looks after a master that has fallen silent: if its home says that
// the application is over (killed behind our back), its twins go now and not
// when they expire.
func (d *driver) askHome(ctx context.Context) {
	if d.asking || d.over || time.Since(d.heard) < d.p.cfg.SilentAfter {
		return
	}
	d.asking = true
	d.heard = time.Now() // the next question comes as much later
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.p.cfg.CallTime)
		defer cancel()
		over, err := d.p.cfg.Launcher.Over(ctx, d.home, d.attempt.Application)
		d.post(letter{look: func(*amrmproxy.Session) { d.asking = false }})
		if err == nil && over {
			d.post(letter{event: amrmproxy.Ended{Why: "its home says that the application is over"}})
		}
	})
}
