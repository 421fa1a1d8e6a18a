// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Faults are what may go wrong, all drawn from the seed.
type Faults struct {
	Loss   float64       // of messages: the request or the answer never arrives
	Double float64       // a request arrives twice
	Late   float64       // a message takes up to Delay longer
	Delay  time.Duration // the most that one takes longer

	Stale   float64 // a message takes up to 25 s longer: its caller may have given up and called again
	Busy    float64 // an event finds the owner of a ResourceManager held up, and shares a turn with what follows
	Orphans bool    // a request is served though its caller has given up

	Step float64 // a router dies before or after a step of a submission

	// Mean times between two faults of each kind; 0 for never.
	Subcluster time.Duration // a ResourceManager is killed, and starts again from its journal
	Proxy      time.Duration // a proxy is killed, and carries on from what is saved
	Router     time.Duration // a router is killed
	Partition  time.Duration // a subcluster is cut off
	Down       time.Duration // the most that one of them is gone
	Pause      time.Duration // a process stands still for up to 20 s, and goes on

	Twice float64 // a user sends a submission through two routers at the same moment
}

// longestPause of a process: longer than callers wait for it.
const longestPause = 20 * time.Second

// DefaultFaults are drawn so that a run over the given time meets each kind
// several times. How bad the network is differs from seed to seed, and whether
// messages outlive their callers' patience at all.
func DefaultFaults(seed uint64, span time.Duration) *Faults {
	rnd := rand.New(rand.NewPCG(seed, 0xfa017))
	few := func(n float64) time.Duration { return time.Duration(float64(span) / n) }
	f := &Faults{
		Loss:       0.004 * rnd.Float64(),
		Double:     0.004 * rnd.Float64(),
		Late:       0.01 * rnd.Float64(),
		Delay:      time.Duration(1+rnd.IntN(4000)) * time.Millisecond,
		Step:       0.05 * rnd.Float64(),
		Subcluster: few(4),
		Proxy:      few(4),
		Router:     few(3),
		Partition:  few(3),
		Down:       time.Duration(1+rnd.IntN(60)) * time.Second,
	}
	rnd = rand.New(rand.NewPCG(seed, 0xad7e))
	has := func() bool { return rnd.IntN(2) == 0 }
	if has() {
		f.Orphans = true
	}
	if has() {
		f.Stale = 0.01 * rnd.Float64()
	}
	if has() {
		f.Pause = few(6)
	}
	if has() {
		f.Twice = 0.2 * rnd.Float64()
	}
	if has() {
		f.Busy = 0.05 * rnd.Float64()
	}
	return f
}

// planFaults sets the times of all faults of the run beforehand, from their own
// source, so that what happens in between does not move them.
func (w *World) planFaults() {
	f, last := &w.faults, w.cfg.Jobs[len(w.cfg.Jobs)-1].Submit+warmUp+time.Minute
	rnd := rand.New(rand.NewPCG(w.cfg.Seed, 0xbad))
	plan := func(mean time.Duration, do func(which uint64, down time.Duration)) {
		if mean <= 0 {
			return
		}
		for at := warmUp; ; {
			at += time.Duration(-math.Log(1-rnd.Float64()) * float64(mean))
			if at >= last {
				return
			}
			which, down := rnd.Uint64(), time.Duration(rnd.Int64N(int64(f.Down)))
			w.at(origin.Add(at), func() { do(which, down) })
		}
	}
	w.at(origin.Add(warmUp), func() { w.faulty = true })
	plan(f.Subcluster, func(which uint64, down time.Duration) {
		if c := w.clusters[which%uint64(len(w.clusters))]; c.up {
			w.audit.fault("subclusters restarted")
			c.down()
			w.after(down, c.comeBack)
		}
	})
	plan(f.Proxy, func(which uint64, down time.Duration) {
		if p := w.proxies[which%uint64(len(w.proxies))]; p.up {
			w.audit.fault("proxies restarted")
			w.crash(p.host)
			w.after(down/4, func() { // sooner than AMs lose patience
				w.boot(p.host)
				p.start()
			})
		}
	})
	plan(f.Pause, func(which uint64, down time.Duration) {
		d := time.Second + down%longestPause
		switch i := int(which % uint64(len(w.clusters)+len(w.proxies)+len(w.routers))); {
		case i < len(w.clusters):
			if c := w.clusters[i]; c.up && !w.asleep(c.host) {
				w.audit.fault("subclusters paused")
				w.pause(c.host, d, func() { c.turn(d) })
			}
		case i < len(w.clusters)+len(w.proxies):
			if p := w.proxies[i-len(w.clusters)]; p.up && !w.asleep(p.host) {
				w.audit.fault("proxies paused")
				w.pause(p.host, d, func() {})
			}
		default:
			if r := w.routers[i-len(w.clusters)-len(w.proxies)]; r.up && !w.asleep(r.host) {
				w.audit.fault("routers paused")
				w.pause(r.host, d, func() {})
			}
		}
	})
	plan(f.Router, func(which uint64, down time.Duration) {
		if r := w.routers[which%uint64(len(w.routers))]; r.up {
			w.killRouter(r, down)
		}
	})
	plan(f.Partition, func(which uint64, down time.Duration) {
		site := int(which % uint64(len(w.cut)))
		if w.cut[site] {
			return
		}
		w.audit.fault("partitions")
		w.cut[site] = true
		w.mark("cut", int64(site), 0)
		w.say("sc-%d is cut off", site+1)
		w.after(down, func() {
			w.cut[site] = false
			w.mark("mended", int64(site), 0)
			w.say("sc-%d is reached again", site+1)
		})
	})
}

// calm ends the faults of the network, so that what is left can come to its end.
func (w *World) calm() { w.faulty = false }

func (w *World) killRouter(r *gateway, down time.Duration) {
	w.audit.fault("routers restarted")
	w.crash(r.host)
	w.after(down, func() {
		w.boot(r.host)
		r.start()
	})
}

// dies draws whether a router dies at this step of a submission.
func (w *World) dies(r *gateway) bool {
	if !w.faulty || !w.chance(w.faults.Step) {
		return false
	}
	w.audit.fault("routers killed within a submission")
	w.killRouter(r, time.Duration(w.rnd.Int64N(int64(w.faults.Down)))/4)
	return true
}
