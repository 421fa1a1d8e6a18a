// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/creelrm/creel/subcluster/rm/pair"
	"github.com/creelrm/creel/subcluster/rm/redisstate"
)

// half is one ResourceManager's place in the pair. Its processes come and go.
type half struct {
	w     *world
	index int
	id    string
	proc  *manager  // the newest one, dead or alive
	deaf  time.Time // until then no answer of Redis arrives
	mute  time.Time // until then no question reaches Redis
	shut  time.Time // until then no client reaches it
}

// manager is one process of a half: the driver of the pair's machine, as package pair/server.
type manager struct {
	*process
	h        *half
	conn     *conn
	machine  *pair.Machine
	lease    *redisstate.Lease
	follower *redisstate.Follower
	timer    int64 // number of the newest one
	services *active
	starting bool
	ending   bool // the services must end, and are still starting
	follows  bool
	said     bool // it has logged a loss
}

const (
	followEvery = 200 * time.Millisecond
	openTime    = 20 * time.Second // of a takeover's wait for the state
	tail        = 30               // groups: some standbys are too late
)

// boot starts a process.
func (h *half) boot() {
	w := h.w
	p := &manager{process: &process{w: w, name: h.id}, h: h, conn: &conn{w: w, half: h.index}}
	h.proc = p
	w.say("%s starts", h.id)
	conf := redisstate.Config{
		Name: "rm", Holder: h.id, Tail: tail, Log: slog.New(p),
		Connect: func() (redisstate.Server, error) { return p.conn, nil },
		Sleep:   func(_ context.Context, d time.Duration) error { return w.running.sleep(d) },
	}
	var err error
	if p.lease, err = redisstate.OpenLease(conf); err == nil {
		p.follower, err = redisstate.NewFollower(conf)
	}
	if err != nil {
		w.breach("%s does not start: %v", h.id, err)
		return
	}
	p.machine = pair.New(w.cfg.pair, w.now)
	p.event(func(time.Time) {})
	p.follow()
}

// Enabled, Handle, WithAttrs and WithGroup make it a slog.Handler.
func (p *manager) Enabled(context.Context, slog.Level) bool { return true }
func (p *manager) Handle(_ context.Context, r slog.Record) error {
	p.w.say("%s logs: %s", p.name, r.Message)
	p.said = p.said || strings.Contains(r.Message, "has lost changes")
	return nil
}
func (p *manager) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p *manager) WithGroup(string) slog.Handler      { return p }

// leads reports whether this process may answer.
func (p *manager) leads() bool { return p.w.now.Before(p.machine.Until()) }

// event passes an event to the machine, and performs its actions.
func (p *manager) event(do func(now time.Time)) {
	if p.dead {
		return
	}
	before := p.machine.Role()
	do(p.w.now)
	if after := p.machine.Role(); after != before {
		p.w.say("%s is %v", p.name, after)
	}
	for _, a := range p.machine.Actions() {
		switch a.Kind {
		case pair.Look, pair.Claim:
			p.ask(a.Kind == pair.Claim)
		case pair.Begin:
			p.begin()
		case pair.End:
			p.w.say("%s ends its services: %s", p.name, a.Why)
			p.end()
		case pair.Release:
			p.start(p.w.cfg.pair.Lease, func(r *routine) {
				_ = p.lease.Release(r) // it ends by itself
				p.event(p.machine.Released)
			})
		}
	}
	p.timer++
	if d := p.machine.Deadline(); !d.IsZero() {
		n := p.timer
		p.on(d.Sub(p.w.now), func() {
			if n == p.timer {
				p.event(p.machine.Tick)
			}
		})
	}
}

func (p *manager) ask(claim bool) {
	term := p.w.cfg.pair.Lease
	p.start(term/2, func(r *routine) {
		asked := p.w.now
		ask := p.lease.Look
		if claim {
			ask = func(ctx context.Context) (redisstate.Claim, error) { return p.lease.Claim(ctx, term) }
		}
		c, err := ask(r)
		p.event(func(now time.Time) {
			p.machine.Answered(now, pair.Answer{Asked: asked, Won: c.Won, Holder: c.Holder, Left: c.Left, Err: err})
		})
	})
}

func (p *manager) begin() {
	p.starting = true
	p.start(openTime, func(r *routine) {
		a, err := p.open(r)
		if err != nil {
			p.w.say("%s does not take over: %v", p.name, err)
		}
		p.starting = false
		p.event(func(now time.Time) {
			if p.services = a; p.ending {
				p.end()
			}
			if p.machine.Began(now, err); p.machine.Role() == pair.Active {
				a.serving = true
				p.w.audit.leads(a)
				a.wake()
			}
		})
	})
}

// end ends the services. If they are still starting, begin calls it again.
func (p *manager) end() {
	a := p.services
	if p.services, p.ending = nil, p.starting; p.ending {
		return
	}
	ended := func() { p.event(p.machine.Ended) }
	if a == nil {
		p.on(0, ended)
		return
	}
	a.stop(ended)
}

// follow keeps the copy of the state current while this process is the standby.
func (p *manager) follow() {
	if p.machine.Role() == pair.Standby && !p.follows {
		p.follows = true
		p.start(0, func(r *routine) {
			_ = p.follower.Follow(r) // the next round repeats it
			p.follows = false
		})
	}
	p.on(followEvery, p.follow)
}
