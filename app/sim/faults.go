// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim/opportune"
)

// Faults has the possible faults, all drawn from the seed.
type Faults struct {
	Loss   float64       // of messages: the request or the answer never arrives
	Double float64       // a request arrives twice
	Again  float64       // a request arrives once more up to five minutes later
	Late   float64       // a message takes up to Delay longer
	Delay  time.Duration // longest such delay

	Stale   float64 // a message takes up to 25 s longer: its caller may have timed out and called again
	Busy    float64 // an event finds the owner of a ResourceManager busy, and shares a turn with later ones
	Clocks  bool    // the clock of a restarting ResourceManager is wrong by up to five minutes, in either direction
	Ordered bool    // messages of a connection keep their order, so that a late one delays the others
	Orphans bool    // a request is served even after its caller timed out

	Unfenced float64 // fraction of members without fences, like Hadoop's, until creel's replace them
	Signed   bool    // members start to sign, and then routers and proxies accept only signed members

	Step float64 // a router dies before or after a step of a submission

	// Mean times between two faults of each kind; 0 for never.
	Subcluster time.Duration // a ResourceManager is killed, and starts again from its journal
	Proxy      time.Duration // a proxy is killed, and continues from its saved state
	Router     time.Duration // a router is killed
	Partition  time.Duration // a subcluster is cut off, both ways or one, or from one other site
	Down       time.Duration // longest outage of these
	SlowPath   time.Duration // messages from one site to another take up to slowestPath longer, for a while
	Pause      time.Duration // a process is paused for up to 20 s
	Halts      time.Duration // a node with all its processes, or a proxy, is paused for up to Halted
	Halted     time.Duration
	Lives      time.Duration // a proxy is presumed dead, and continues while its replacement runs
	RMLives    time.Duration // the same for a ResourceManager, whose replacement has its journal
	Jumps      time.Duration // the clock of a running ResourceManager is set, by up to five minutes in either direction
	StoreJumps time.Duration // the clock of the store is set, by up to two minutes in either direction
	NodeClocks time.Duration // clocks of nodes are wrong by up to four minutes, and are set at this interval
	Drift      float64       // largest drift of a ResourceManager's clock, as a fraction

	Strangers time.Duration // a process without the secret writes into the store, once all processes verify signatures

	Twice float64 // a user sends a submission through two routers at the same moment

	// Repeats is the mean time between submissions that users repeat after the application's end, when its home does
	// not list it any more.
	Repeats time.Duration

	Nodes   time.Duration // a node is killed with all its processes, and restarts after a while
	Stalls  time.Duration // every fourth AM is paused for up to 20 s
	Kills   time.Duration // an administrator kills a UAM in its member
	Store   time.Duration // the store is down for a while
	Slow    time.Duration // the store pauses for up to 20 s, and then serves the queued calls
	Fails   time.Duration // calls of the store fail for a while; some of them take effect
	Locked  time.Duration // the store is read only for a while
	Loses   time.Duration // the store fails over and loses its last acknowledged writes
	Empty   time.Duration // the store comes back empty, and is rebuilt
	Back    time.Duration // the store goes back by up to ten minutes, and is rebuilt
	Planner time.Duration // the rebalancer is dead for an hour
	Disk    time.Duration // the disk of a ResourceManager's journal is slow, or full, for a while
	Users   time.Duration // a user kills or moves, or an administrator drains, reloads queues or changes the policy
	Claims  bool          // members claim their epochs by messages; otherwise they have them at their start
	Asks    time.Duration // a user requests a change of an application, or a signal to a container, from a router
	Moves   time.Duration // a member is drained by moving its waiting applications; 0: routers move none
	Fickle  float64       // an AM releases a container just after the grant, and asks again
	Hurried float64       // fraction of AMs that call each 50 ms, with or without changes
	// Sleepers is the fraction of submissions in which a router pauses between its choice of a home and the
	// submission, while that member is drained.
	Sleepers float64
}

// longestPause is the longest pause of a process: longer than callers wait for it.
const longestPause = 20 * time.Second

// DefaultFaults draws the faults of a seed's run over the given time: which kinds exist in it, and how often each
// occurs. A seed with few kinds gets further into the effects of each than one in which everything fails at once.
// Each kind has its own random source, so that adding a kind does not change the others.
func DefaultFaults(seed uint64, span time.Duration) *Faults {
	few := func(n float64) time.Duration { return time.Duration(float64(span) / n) }
	f := &Faults{Down: time.Duration(1+source(seed, "down").IntN(60)) * time.Second}
	// In most seeds: faults that every network and every restart has.
	draw := func(kind string, of, in int, set func(rnd *rand.Rand)) {
		if rnd := source(seed, kind); rnd.IntN(in) < of {
			set(rnd)
		}
	}
	draw("loss", 3, 4, func(rnd *rand.Rand) { f.Loss = 0.004 * rnd.Float64() })
	draw("double", 3, 4, func(rnd *rand.Rand) { f.Double = 0.004 * rnd.Float64() })
	draw("late", 3, 4, func(rnd *rand.Rand) {
		f.Late, f.Delay = 0.01*rnd.Float64(), time.Duration(1+rnd.IntN(4000))*time.Millisecond
	})
	draw("step", 3, 4, func(rnd *rand.Rand) { f.Step = 0.05 * rnd.Float64() })
	draw("subcluster", 3, 4, func(*rand.Rand) { f.Subcluster = few(4) })
	draw("proxy", 3, 4, func(*rand.Rand) { f.Proxy = few(4) })
	draw("router", 3, 4, func(*rand.Rand) { f.Router = few(3) })
	draw("partition", 3, 4, func(*rand.Rand) { f.Partition = few(3) })
	// In every second seed.
	draw("orphans", 1, 2, func(*rand.Rand) { f.Orphans = true })
	draw("stale", 1, 2, func(rnd *rand.Rand) { f.Stale = 0.01 * rnd.Float64() })
	draw("again", 1, 2, func(rnd *rand.Rand) { f.Again = 0.002 * rnd.Float64() })
	draw("ordered", 1, 2, func(*rand.Rand) { f.Ordered = true })
	draw("users", 1, 2, func(*rand.Rand) { f.Users = few(10) })
	draw("disk", 1, 2, func(*rand.Rand) { f.Disk = few(4) })
	draw("clocks", 1, 3, func(*rand.Rand) { f.Clocks = true })
	draw("pause", 1, 2, func(*rand.Rand) { f.Pause = few(6) })
	draw("halts", 1, 3, func(rnd *rand.Rand) {
		longest := []time.Duration{5 * time.Second, 20 * time.Second, 90 * time.Second}
		f.Halts, f.Halted = few(8), longest[rnd.IntN(len(longest))]
	})
	draw("lives", 1, 3, func(*rand.Rand) { f.Lives = few(4) })
	draw("lives of ResourceManagers", 1, 3, func(*rand.Rand) { f.RMLives = few(4) })
	draw("jumps", 1, 3, func(rnd *rand.Rand) { f.Jumps, f.Drift = few(4), 0.01*rnd.Float64() })
	draw("store jumps", 1, 3, func(*rand.Rand) { f.StoreJumps = few(3) })
	draw("node clocks", 1, 3, func(*rand.Rand) { f.NodeClocks = few(20) })
	draw("twice", 1, 2, func(rnd *rand.Rand) { f.Twice = 0.2 * rnd.Float64() })
	draw("old", 1, 4, func(*rand.Rand) { f.Unfenced = 0.5 })
	draw("signed", 1, 6, func(*rand.Rand) { f.Signed, f.Strangers = true, few(10) })
	draw("busy", 1, 2, func(rnd *rand.Rand) { f.Busy = 0.05 * rnd.Float64() })
	draw("nodes", 1, 2, func(*rand.Rand) { f.Nodes = few(8) })
	draw("stalls", 1, 2, func(*rand.Rand) { f.Stalls = few(8) })
	draw("kills", 1, 2, func(*rand.Rand) { f.Kills = few(8) })
	draw("store", 1, 2, func(*rand.Rand) { f.Store = few(2) })
	draw("slow", 1, 3, func(*rand.Rand) { f.Slow = few(3) })
	draw("fails", 1, 3, func(*rand.Rand) { f.Fails = few(3) })
	draw("locked", 1, 3, func(*rand.Rand) { f.Locked = few(3) })
	// In few seeds, because less is checked after a store has lost writes.
	draw("loses", 1, 12, func(*rand.Rand) { f.Loses = few(2) })
	draw("empty", 1, 12, func(*rand.Rand) { f.Empty = few(1.5) })
	draw("back", 1, 12, func(*rand.Rand) { f.Back = few(2) })
	draw("moves", 1, 2, func(*rand.Rand) { f.Moves = few(6) })
	draw("asks", 1, 2, func(*rand.Rand) { f.Asks = few(150) })
	draw("claims", 1, 2, func(*rand.Rand) { f.Claims = true })
	draw("fickle", 1, 2, func(rnd *rand.Rand) { f.Fickle = 0.1 * rnd.Float64() })
	draw("hurried", 1, 4, func(*rand.Rand) { f.Hurried = 0.2 })
	draw("sleepers", 1, 8, func(*rand.Rand) { f.Sleepers = 0.02 })
	draw("repeats", 1, 2, func(*rand.Rand) { f.Repeats = few(60) })
	return f
}

// NamedFaults returns only faults of the named kinds, to study their effects.
func NamedFaults(kinds []string) (*Faults, error) {
	f := &Faults{Down: 4 * time.Minute}
	for _, kind := range kinds {
		set, known := namedFaults[kind]
		if !known {
			return nil, fmt.Errorf("there is no fault %q, only %s", kind,
				strings.Join(FaultNames(), ", "))
		}
		set(f)
	}
	return f, nil
}

var namedFaults = map[string]func(f *Faults){
	"rebalancer": func(f *Faults) { f.Planner = 20 * time.Minute },
	"members":    func(f *Faults) { f.Subcluster, f.Partition = 5*time.Minute, 5*time.Minute },
	"late":       func(f *Faults) { f.Late, f.Delay, f.Orphans = 0.0005, 3*time.Minute, true },
	"store":      func(f *Faults) { f.Empty = 30 * time.Minute },
	"back":       func(f *Faults) { f.Back = 2 * time.Minute },
	"loses":      func(f *Faults) { f.Loses = time.Minute },
	"paths":      func(f *Faults) { f.SlowPath, f.Orphans = 2*time.Minute, true },
	"sleepers":   func(f *Faults) { f.Sleepers = 0.05 },
	"repeats": func(f *Faults) {
		f.Repeats, f.Unfenced, f.Subcluster, f.Down = 10*time.Second, 0.5, 5*time.Minute, time.Minute
	},
}

// FaultNames returns the kinds of NamedFaults, sorted.
func FaultNames() []string { return slices.Sorted(maps.Keys(namedFaults)) }

// DrawOpportunistic draws the fraction of a seed's asks that are for opportunistic containers: zero in two of three
// seeds.
func DrawOpportunistic(seed uint64) float64 {
	return opportune.DrawShare(source(seed, "opportunistic"))
}

// DrawDistributed draws whether a seed's proxies place opportunistic containers: in every second seed that has some.
func DrawDistributed(seed uint64) bool {
	return DrawOpportunistic(seed) > 0 && opportune.DrawDistributed(source(seed, "distributed scheduling"))
}

// source returns a kind's separate random source in a seed.
func source(seed uint64, kind string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// wrong draws the error of a clock.
func wrong(drawn uint64, most time.Duration) time.Duration {
	return time.Duration(drawn%uint64(2*most)) - most
}

// mostNodeSkew is the largest error of a node's clock: with its ResourceManager's error, less than the ten minutes
// for which a container's token is valid.
const mostNodeSkew = 4 * time.Minute

// partition cuts some of the paths from and to a site for a while.
func (w *World) partition(which uint64, down time.Duration) {
	n := len(w.clusters)
	site := int(which % uint64(n))
	other := int(which>>16%uint64(n+1)) - 1 // or outside
	shape := []string{"both ways", "one way", "the other way", "from one site"}[which>>8%4]
	var cut []int
	for s := outside; s < n; s++ {
		to, from := w.between(site, s), w.between(s, site)
		switch {
		case s == site:
		case shape == "both ways", shape == "from one site" && s == other:
			cut = append(cut, to, from)
		case shape == "one way":
			cut = append(cut, to)
		case shape == "the other way":
			cut = append(cut, from)
		}
	}
	cut = slices.DeleteFunc(cut, func(way int) bool { return w.cuts[way] }) // another partition's, which ends by itself
	if len(cut) == 0 {
		return
	}
	w.audit.fault("partitions")
	w.mark("cut", int64(site), int64(len(cut)))
	w.say("%s is cut off, %s (%d ways)", w.clusters[site].id, shape, len(cut))
	for _, way := range cut {
		w.cuts[way] = true
	}
	w.after(down, func() {
		for _, way := range cut {
			w.cuts[way] = false
		}
		w.mark("mended", int64(site), int64(len(cut)))
		w.say("%s is reached again", w.clusters[site].id)
	})
}

// slowestPath is the longest delay of a message on a slow path: longer than most callers wait.
const slowestPath = 14 * time.Second

// slowPath delays messages from one site to another for a while, but not those in the other direction.
func (w *World) slowPath(which uint64, down time.Duration) {
	n := uint64(len(w.clusters)) + 1
	from, to := int(which%n)-1, int(which>>8%n)-1
	way := w.between(from, to)
	if from == to || w.late[way] > 0 {
		return
	}
	w.audit.fault("paths slow one way")
	w.late[way] = time.Second + time.Duration(which>>16%uint64(slowestPath-time.Second))
	w.mark("slow path", int64(way), w.late[way].Milliseconds())
	w.say("messages from site %d to site %d are late by %v", from, to, w.late[way])
	w.after(down, func() {
		w.late[way] = 0
		w.mark("slow path", int64(way), 0)
	})
}

// calm ends the network faults, so that the remaining work can finish.
func (w *World) calm() { w.faulty = false }

// killUAM kills one of the running UAMs, as an administrator of its member may.
func (w *World) killUAM(which uint64) {
	c := w.clusters[which%uint64(len(w.clusters))]
	var uams []creel.ApplicationID
	for v := range c.m.Apps {
		// A member without fences accepts an id only once, like Hadoop's. If an AM accepts only places there, it
		// waits for ever once its UAM there is killed, and no component can help it.
		if v.Unmanaged && !v.State.Ended() && !(c.hadoop && w.audit.apps[v.ID].am.insists()) {
			uams = append(uams, v.ID)
		}
	}
	if !c.up || w.asleep(c.host) || len(uams) == 0 {
		return
	}
	id := uams[which>>8%uint64(len(uams))]
	w.audit.fault("UAMs killed")
	w.say("the UAM of %s in %s is killed", id, c.id)
	app := w.audit.apps[id]
	if m := app.am; m != nil && !m.dead {
		// A proxy that took over the session knows the containers in this UAM's registration, so the session is
		// identified by its epoch.
		s := m.proxy().sessions[m.attempt]
		for _, held := range slices.SortedFunc(maps.Keys(m.held), creel.ContainerID.Compare) {
			if held.Epoch()/epochStep-1 == int64(c.index) {
				m.unheard(held, c, s != nil && m.proxy().epoch == 0)
			}
		}
	}
	c.kill(id, "killed by an administrator", func(bool, error) {})
}

func (w *World) killProxy(p *proxy, down time.Duration) {
	w.crash(p.host)
	w.after(down, func() {
		w.boot(p.host)
		p.start()
	})
}

func (w *World) killRouter(r *gateway, down time.Duration) {
	w.audit.fault("routers restarted")
	w.crash(r.host)
	w.after(down, func() {
		w.boot(r.host)
		r.start()
	})
}

// fallsAsleep sometimes pauses a router before it submits to a member, which is drained meanwhile.
func (w *World) fallsAsleep(t *task, c *cluster) {
	r := t.r
	if !w.faulty || !w.chance(w.faults.Sleepers) || w.asleep(r.host) {
		return
	}
	w.audit.fault("routers asleep within a submission")
	d := 12*time.Second + time.Duration(w.rnd.Int64N(int64(12*time.Second)))
	w.pause(r.host, d, func() {})
	w.drain(c, "maintenance")
	w.after(d+time.Minute, func() { w.drain(c, "") })
	t.flow.pause(func(resume func()) { w.awake(r.host, resume) })
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
