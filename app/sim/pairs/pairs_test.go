// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/pair"
)

var (
	onlySeed = flag.Uint64("seed", 0, "play this seed only, and log its events")
	seeds    = flag.Int("seeds", 10, "number of seeds")
)

// corpus has seeds that once failed, and seeds that catch a mutation.
var corpus = []uint64{745128991526605480, 745128991526605481}

// config of a run.
type config struct {
	pair pair.Config
	wait bool // acknowledged by the replica
	loss bool // failovers may lose writes
}

const (
	storm = 3 * time.Minute // of faults
	quiet = 2 * time.Minute // in which all applications end
)

// play is a run of a seed. It returns the world at its end.
func play(seed uint64, log func(string, ...any)) *world {
	rnd := rand.New(rand.NewPCG(seed, 49))
	w := &world{now: start, rnd: rnd, log: log}
	w.cfg = config{
		pair: pair.Config{Automatic: rnd.IntN(5) > 0, Lease: 5 * time.Second},
		wait: rnd.IntN(2) == 0, loss: rnd.IntN(2) == 0,
	}
	w.redis = newServer(w)
	w.redis.wait = w.cfg.wait
	w.audit = newAudit(w)
	for i := range w.halves {
		w.halves[i] = &half{w: w, index: i, id: fmt.Sprint("rm", i+1)}
		w.halves[i].boot()
	}
	for i := range 3 {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	w.faulty = true
	w.submissions()
	w.faults()
	w.operator()
	w.run(start.Add(storm), nil)
	w.heal()
	w.run(w.now.Add(2*w.cfg.pair.Lease+2*time.Second), func() bool { return w.leader() != nil })
	if w.leader() == nil {
		w.breach("no ResourceManager leads after the faults")
	}
	w.run(w.now.Add(quiet), func() bool { return w.leader() != nil && w.open() == "" })
	if left := w.open(); left != "" {
		w.breach("%s", left)
	}
	for _, h := range w.halves {
		h.proc.kill()
	}
	return w
}

// leader returns the active process that leads, nil for none.
func (w *world) leader() *manager {
	for _, h := range w.halves {
		if p := h.proc; !p.dead && !p.paused && p.leads() && p.machine.Role() == pair.Active {
			return p
		}
	}
	return nil
}

// open describes an application that has not ended, "" if all have.
func (w *world) open() string {
	for _, a := range w.apps {
		ended := a.finished || a.lost || w.audit.lossy()
		if p := w.leader(); !ended && p != nil {
			view, _ := p.services.owner.Machine.App(a.id)
			ended = view.State.Ended() // its AM may have missed the answer
		}
		if !ended {
			return fmt.Sprintf("%s has not ended (acknowledged %v, AM %+v)", a.id, a.acknowledged, a.running)
		}
	}
	return ""
}

func (w *world) submissions() {
	w.submit()
	w.after(w.between(time.Second, 5*time.Second), func() {
		if w.faulty {
			w.submissions()
		}
	})
}

// heal ends all faults.
func (w *world) heal() {
	w.faulty = false
	w.redis.lag, w.redis.down, w.slow = time.Millisecond, w.now, w.now
	for _, h := range w.halves {
		h.deaf, h.mute, h.shut = w.now, w.now, w.now
	}
	w.say("the faults end")
}

// operator orders a standby to lead where failover is manual and none leads.
func (w *world) operator() {
	if !w.cfg.pair.Automatic && w.leader() == nil {
		p := w.halves[w.rnd.IntN(2)].proc
		p.now(func() { p.event(func(now time.Time) { _ = p.machine.Lead(now) }) })
	}
	w.after(time.Second, w.operator)
}

// faults draws one fault after the other.
func (w *world) faults() {
	w.after(w.between(2*time.Second, 12*time.Second), func() {
		if w.faulty {
			w.fault()
			w.faults()
		}
	})
}

func (w *world) fault() {
	h := w.halves[w.rnd.IntN(2)]
	if p := w.leader(); p != nil && w.chance(0.8) {
		h = p.h
	}
	p := h.proc
	for _, o := range w.halves {
		if o.proc.dead || o.proc.paused {
			h, p = w.halves[1-o.index], w.halves[1-o.index].proc
		}
	}
	term := w.cfg.pair.Lease
	switch w.rnd.IntN(9) {
	case 0:
		if !p.dead {
			w.say("%s is killed", p.name)
			p.kill()
			w.after(w.between(time.Second, 8*time.Second), func() { h.boot() })
		}
	case 1:
		p.pause(w.between(300*time.Millisecond, term))
	case 2:
		p.pause(w.between(term, 3*term))
	case 3:
		h.mute = w.now.Add(w.between(time.Second, 3*term))
		w.say("questions of %s do not reach Redis", h.id)
	case 4:
		h.deaf = w.now.Add(w.between(time.Second, 3*term))
		w.say("answers of Redis do not reach %s", h.id)
	case 5:
		h.shut = w.now.Add(w.between(time.Second, 3*term))
		w.say("clients do not reach %s", h.id)
	case 6:
		w.slow = w.now.Add(w.between(time.Second, 3*term))
		w.say("Redis is slow")
	case 7:
		w.lose()
	case 8:
		w.say("an administrator makes %s standby", h.id)
		p.now(func() { p.event(p.machine.StandBy) })
		other := w.halves[1-h.index].proc
		other.now(func() { other.event(func(now time.Time) { _ = other.machine.Lead(now) }) })
	}
}

// lose is a fault of Redis.
func (w *world) lose() {
	s := w.redis
	switch {
	case w.cfg.loss && w.chance(0.4):
		s.split(w.rnd.IntN(2), w.between(time.Second, 8*time.Second))
	case w.cfg.loss:
		s.lag = w.between(100*time.Millisecond, 8*time.Second)
		w.after(w.between(time.Second, 10*time.Second), func() {
			s.failover(w.between(100*time.Millisecond, 3*time.Second))
			s.lag = time.Millisecond
		})
	default:
		s.lag = 0
		s.failover(w.between(100*time.Millisecond, 3*time.Second))
	}
}

// A pair keeps its promises through drawn faults, and the seeds have takeovers and losses enough.
func TestPairKeepsPromisesThroughFaults(t *testing.T) {
	if *onlySeed > 0 {
		if w := play(*onlySeed, t.Logf); w.broken != "" {
			t.Fatal(w.broken)
		}
		return
	}
	var takeovers, acknowledged, reported, lost int
	first := propertytest.Seed(t)
	list := corpus
	for i := range uint64(*seeds) {
		list = append(list, first+i)
	}
	for _, seed := range list {
		w := play(seed, nil)
		if w.broken != "" {
			t.Fatalf("%s\n\tgo test ./app/sim/pairs -run %s -v -seed=%d", w.broken, t.Name(), seed)
		}
		takeovers += w.audit.takeovers
		acknowledged += w.audit.acknowledged
		reported += w.audit.reported
		lost += len(w.redis.lost)
	}
	t.Logf("%d takeovers, %d submissions, %d groups lost, %d losses reported",
		takeovers, acknowledged, lost, reported)
	if takeovers < 5**seeds || acknowledged < 20**seeds || lost == 0 || reported == 0 {
		t.Error("the seeds play too little")
	}
}
