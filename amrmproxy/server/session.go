// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// message is an entry of a session's mailbox: an event, or a function that reads the session's state.
type message struct {
	event amrmproxy.Event
	look  func(*amrmproxy.Session)
	from  *Caller
	reply func(proto.Message, error)
	// toHome: the event is the answer to a call with the AM's token.
	toHome bool
}

// session is the goroutine of one attempt: it passes events to the driver and performs the actions.
type session struct {
	server  *Server
	attempt creel.AttemptID
	driver  *amrmproxy.Driver
	record  amrmproxy.Recording // used by one goroutine at a time: by the load, then by one save after another
	mailbox chan message
	gone    chan struct{} // closed when the goroutine has ended
	earlier []*session    // of earlier attempts of the application, in this process
	leaf    string        // leaf name of its queue, "" while unknown; guarded by Server.mu
	log     *slog.Logger

	queue      creel.QueuePath  // as last passed to the server
	credential *hrpc.Credential // for calls to home: the AM's token, or its successor issued by home
	replaces   []byte           // the identifier of the AM's token, if credential is a successor
	login      *hrpc.RelayedLogin
	calls      map[uint64]func(proto.Message, error)
	call       uint64
	began      time.Time         // of the AM's first call
	stages     *telemetry.Stages // of an application whose submission was sampled; nil otherwise
	closed     bool
	refusal    error // error for unanswered calls at the end
	cancel     context.CancelFunc
	children   sync.WaitGroup
}

func newSession(s *Server, who Caller) *session {
	d := &session{
		server:  s,
		attempt: who.Attempt,
		driver: amrmproxy.NewDriver(amrmproxy.DriverOptions{
			Config:  s.cfg.Driver,
			Attempt: who.Attempt,
			Home:    who.Home,
			Rand:    rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
			Issuer:  s.cfg.Issuer,
		}),
		record: amrmproxy.Recording{
			Attempt: who.Attempt, Proxy: s.cfg.Name, Writer: cryptorand.Text(),
			Store: s.cfg.Store, Sealer: s.cfg.Sealer,
		},
		mailbox: make(chan message, s.cfg.Mailbox),
		gone:    make(chan struct{}),
		calls:   map[uint64]func(proto.Message, error){},
		log:     s.cfg.Logger.With("attempt", who.Attempt.String()),
	}
	d.record.WentBack = func() {
		d.log.Warn("the state store went back to an earlier state of the UAM record, which is saved again",
			"try", "see that the store is persistent (docs/operations/redis.md)")
	}
	return d
}

func (d *session) post(m message) {
	select {
	case d.mailbox <- m:
	case <-d.gone:
	}
}

func (d *session) run(ctx context.Context) {
	defer func() {
		d.cancel()
		d.server.forget(d)
		close(d.gone)
		d.children.Wait()
		d.server.cfg.Members.Forget(d.attempt)
		d.refuse()
	}()
	d.load(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !d.closed {
		select {
		case <-ctx.Done():
			return
		case m := <-d.mailbox:
			d.take(ctx, m)
			for more := true; more; { // process all events that are in the mailbox
				select {
				case m := <-d.mailbox:
					d.take(ctx, m)
				default:
					more = false
				}
			}
		case <-timer.C:
			d.step(ctx, amrmproxy.Tick{})
		}
		timer.Reset(d.server.cfg.Clock.Until(d.driver.Wake()))
	}
}

// refuse answers all unanswered calls with an error: the proxy stops, or the session failed to start.
func (d *session) refuse() {
	err := d.refusal
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
		case m := <-d.mailbox:
			if m.reply != nil {
				m.reply(nil, err)
			}
		default:
			return
		}
	}
}

func (d *session) take(ctx context.Context, m message) {
	if m.look != nil {
		m.look(d.driver.Session())
		return
	}
	if e, ok := m.event.(amrmproxy.FromAM); ok {
		d.login = m.from.Login
		if c := m.from.Credential; c == nil || !bytes.Equal(c.Identifier, d.replaces) {
			d.credential, d.replaces = c, nil
		}
		if d.call++; d.call == 1 {
			d.began = time.Now()
		}
		if len(e.Allocate.GetAsk())+len(e.Allocate.GetSchedulingRequests()) > 0 {
			d.stages.Reached("proxy: first ask")
		}
		e.Call = d.call
		d.calls[e.Call] = m.reply
		m.event = e
	}
	if e, ok := m.event.(amrmproxy.Answered); ok && m.toHome && d.credential != nil {
		d.renew(e.Allocate.GetAmRmToken())
	}
	d.step(ctx, m.event)
}

// renew stores a token that home issues to the AM when its keys roll. The AM stays on the connection on which it
// logged in with the earlier token. Home will drop the earlier token's key, and a new connection to home needs the
// new token.
func (d *session) renew(t *yarnpb.TokenProto) {
	if len(t.GetPassword()) == 0 {
		return
	}
	if d.replaces == nil {
		d.replaces = d.credential.Identifier
	}
	d.credential = &hrpc.Credential{Identifier: t.GetIdentifier(), Password: t.GetPassword(), Kind: t.GetKind()}
}

func (d *session) step(ctx context.Context, e amrmproxy.Event) {
	policies := d.server.policyView()
	d.driver.See(policies.view, policies.table, d.server.places())
	actions := d.driver.Step(d.server.cfg.Clock.Now(), e)
	if s := d.driver.Session(); s != nil {
		if q := s.Queue(); q != d.queue {
			d.queue = q
			d.server.wants(d, q.Leaf())
		}
		if h, some := s.TakeWaits(); some {
			d.server.count.addWaits(&h)
		}
	}
	d.perform(ctx, actions)
}

func (d *session) perform(ctx context.Context, actions []amrmproxy.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case amrmproxy.Reply:
			d.answer(a)
		case amrmproxy.Send:
			d.send(ctx, a)
		case amrmproxy.Save:
			d.save(ctx, a)
		case amrmproxy.NewID:
			d.newID(ctx, a)
		case amrmproxy.Launch:
			d.launch(ctx, a)
		case amrmproxy.Drop:
			d.drop(ctx, a)
		case amrmproxy.AskHome:
			d.askHome(ctx, a)
		case amrmproxy.Load:
			d.load(ctx)
		case amrmproxy.Done:
			d.log.Info("session over", "why", a.Why)
		case amrmproxy.Close:
			d.closed, d.refusal = true, a.Err
		}
	}
}

func (d *session) answer(a amrmproxy.Reply) {
	reply := d.calls[a.Call]
	delete(d.calls, a.Call)
	if reply == nil {
		return
	}
	switch {
	case a.Err != nil:
		d.server.count.errors.Add(1)
		reply(nil, a.Err)
	case a.Register != nil:
		if d.stages == nil {
			d.stages = telemetry.NewStages(d.server.cfg.Traces, yarnrpc.TraceOf(a.Register), d.began,
				attribute.String("creel.attempt", d.attempt.String()))
			d.stages.Reached("proxy: register")
		}
		reply(a.Register, nil)
	case a.Allocate != nil:
		if len(a.Allocate.GetAllocatedContainers()) > 0 {
			d.stages.Reached("proxy: first grant")
		}
		reply(a.Allocate, nil)
	default:
		reply(a.Finish, nil)
	}
}

// load reads the record after the sessions of earlier attempts have ended: they must not write after the read.
func (d *session) load(ctx context.Context) {
	earlier := d.earlier
	d.earlier = nil
	d.children.Go(func() {
		for _, other := range earlier {
			other.cancel()
			select {
			case <-other.gone:
			case <-ctx.Done():
				return
			}
		}
		ctx, cancel := context.WithTimeout(ctx, d.server.cfg.StoreTime)
		defer cancel()
		record, err := d.record.Load(ctx)
		if err != nil {
			d.log.Warn("no session yet", "error", err)
		}
		d.post(message{event: amrmproxy.Opened{Record: record, Err: err}})
	})
}

func (d *session) send(ctx context.Context, a amrmproxy.Send) {
	to := To{Member: a.Member, Attempt: d.attempt, Credential: d.credential, Login: d.login}
	if t := a.Token; t != nil {
		to.Login = nil
		to.Credential = &hrpc.Credential{
			Identifier: t.GetIdentifier(),
			Password:   t.GetPassword(),
			Kind:       t.GetKind(),
			Service:    t.GetService(),
		}
	}
	d.server.count.calls.Add(1)
	d.children.Add(1)
	d.server.workers.Give(func() {
		defer d.children.Done()
		ctx, cancel := context.WithTimeout(ctx, d.server.cfg.CallTime)
		defer cancel()
		e := amrmproxy.Answered{Member: a.Member, Seq: a.Seq}
		switch m := d.server.cfg.Members; {
		case a.Register != nil && a.Distributed:
			var r *yarnpb.RegisterDistributedSchedulingAMResponseProto
			r, e.Err = m.RegisterDistributed(ctx, to, a.Register)
			e.TakeTerms(r)
		case a.Allocate != nil && a.Distributed:
			var r *yarnpb.DistributedSchedulingAllocateResponseProto
			r, e.Err = m.AllocateDistributed(ctx, to, a.Report())
			e.TakeLoaded(r)
		case a.Register != nil:
			e.Register, e.Err = m.Register(ctx, to, a.Register)
		case a.Allocate != nil:
			e.Allocate, e.Err = m.Allocate(ctx, to, a.Allocate)
		default:
			e.Finish, e.Err = m.Finish(ctx, to, a.Finish)
		}
		if a.Idle && e.Finish.GetIsUnregistered() {
			d.server.count.returns.Add(1)
			d.log.Info("idle UAM ended", "member", a.Member)
		}
		if e.Err != nil {
			d.server.count.callErrors.Add(1)
			d.log.Debug("member call failed", "member", a.Member, "error", e.Err)
		}
		d.post(message{event: e, toHome: a.Token == nil})
	})
}

func (d *session) save(ctx context.Context, a amrmproxy.Save) {
	d.server.count.saves.Add(1)
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.server.cfg.StoreTime)
		defer cancel()
		err := d.record.Save(ctx, a.Record)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return
			}
			d.log.Warn("failed to save UAM record", "error", err)
			d.post(message{event: amrmproxy.SaveFailed{Number: a.Number, Err: err}})
			return
		}
		d.post(message{event: amrmproxy.Saved{Number: a.Number}})
	})
}

func (d *session) newID(ctx context.Context, a amrmproxy.NewID) {
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.server.cfg.CallTime)
		defer cancel()
		id, err := d.server.cfg.Clients.NewID(ctx, a.Member, a.User)
		if err == nil {
			d.log.Info("the next UAM has an id of its own", "member", a.Member, "id", id.String())
		}
		d.post(message{event: amrmproxy.Numbered{Member: a.Member, ID: id, Err: err}})
	})
}

func (d *session) launch(ctx context.Context, a amrmproxy.Launch) {
	d.server.count.launches.Add(1)
	ctx = d.stages.Context(ctx)
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.server.cfg.LaunchTime)
		defer cancel()
		brief, enough := context.WithTimeout(ctx, amrmproxy.HomeTime(d.server.cfg.LaunchTime))
		defer enough()
		e, err := amrmproxy.LaunchUAM(ctx, brief, d.server.cfg.Clients, sleep, a)
		if err != nil {
			d.server.count.launchFailures.Add(1)
			d.log.Warn("failed to launch UAM", "member", a.Member, "error", err)
			d.post(message{event: amrmproxy.LaunchFailed{Member: a.Member, Err: err}})
			return
		}
		d.log.Info("UAM launched", "member", a.Member, "uam", e.Attempt.String())
		d.post(message{event: e})
	})
}

func (d *session) drop(ctx context.Context, a amrmproxy.Drop) {
	d.server.count.drops.Add(1)
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.server.cfg.CallTime)
		defer cancel()
		brief, enough := context.WithTimeout(ctx, amrmproxy.HomeTime(d.server.cfg.CallTime))
		defer enough()
		err := amrmproxy.DropUAM(ctx, brief, d.server.cfg.Clients, sleep, a)
		if err != nil {
			d.log.Warn("failed to kill UAM", "member", a.Member, "error", err)
		}
		d.post(message{event: amrmproxy.Dropped{Member: a.Member, Err: err}})
	})
}

func (d *session) askHome(ctx context.Context, a amrmproxy.AskHome) {
	d.children.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.server.cfg.CallTime)
		defer cancel()
		report, err := d.server.cfg.Clients.Report(ctx, a.Home, "", a.Application)
		d.post(message{event: amrmproxy.AnsweredBy(report, err)})
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
