// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"
)

// A fault is a kind of failure that a world draws at random times.
type fault struct {
	kind string // name of the random source of its times
	mean func(f *Faults) time.Duration
	// do applies it. which chooses among processes, down is the length of an outage.
	do func(w *World, which uint64, down time.Duration)
}

// faultKinds are all faults.
var faultKinds = []fault{
	{"subcluster", func(f *Faults) time.Duration { return f.Subcluster }, restartSubcluster},
	{"proxy", func(f *Faults) time.Duration { return f.Proxy }, restartProxy},
	{"pause", func(f *Faults) time.Duration { return f.Pause }, pauseOne},
	{"halts", func(f *Faults) time.Duration { return f.Halts }, haltOne},
	{"lives", func(f *Faults) time.Duration { return f.Lives }, replaceProxy},
	{"lives of ResourceManagers", func(f *Faults) time.Duration { return f.RMLives }, replaceRM},
	{"jumps", func(f *Faults) time.Duration { return f.Jumps }, setRMClock},
	{"store jumps", func(f *Faults) time.Duration { return f.StoreJumps }, setStoreClock},
	{"times of node clocks", func(f *Faults) time.Duration { return f.NodeClocks }, setNodeClock},
	{"nodes", func(f *Faults) time.Duration { return f.Nodes }, killNode},
	{"stalls", func(f *Faults) time.Duration { return f.Stalls }, stallAMs},
	{"kills", func(f *Faults) time.Duration { return f.Kills }, killOneUAM},
	{"store", func(f *Faults) time.Duration { return f.Store }, stopStore},
	{"disk", func(f *Faults) time.Duration { return f.Disk }, wearDisk},
	{"users", func(f *Faults) time.Duration { return f.Users }, (*World).meddle},
	{"asks", func(f *Faults) time.Duration { return f.Asks }, askOne},
	{"moves", func(f *Faults) time.Duration { return f.Moves }, drainByMoving},
	{"slow", func(f *Faults) time.Duration { return f.Slow }, pauseStore},
	{"fails", func(f *Faults) time.Duration { return f.Fails }, failStore},
	{"locked", func(f *Faults) time.Duration { return f.Locked }, lockStore},
	{"loses", func(f *Faults) time.Duration { return f.Loses }, loseStoreWrites},
	{"empty", func(f *Faults) time.Duration { return f.Empty }, emptyStore},
	{"back", func(f *Faults) time.Duration { return f.Back }, takeStoreBack},
	{"repeats", func(f *Faults) time.Duration { return f.Repeats }, (*World).repeatEnded},
	{"planner", func(f *Faults) time.Duration { return f.Planner }, killPlanner},
	{"strangers", func(f *Faults) time.Duration { return f.Strangers }, (*World).stranger},
	{"router", func(f *Faults) time.Duration { return f.Router }, restartRouter},
	{"partition", func(f *Faults) time.Duration { return f.Partition }, (*World).partition},
	{"slow path", func(f *Faults) time.Duration { return f.SlowPath }, (*World).slowPath},
}

// planFaults sets the times of all faults of the run in advance, from their own random sources, so that other events
// do not shift them.
func (w *World) planFaults() {
	f, last := &w.faults, w.cfg.Jobs[len(w.cfg.Jobs)-1].Submit+warmUp+time.Minute
	for rnd, i := source(w.cfg.Seed, "old members"), 0; i < len(w.clusters); i++ {
		w.clusters[i].hadoop = rnd.Float64() < f.Unfenced
	}
	if f.Signed {
		w.sign(last)
	}
	w.after(time.Minute, w.reconcile)
	w.at(origin.Add(warmUp), func() { w.faulty = true })
	for _, c := range w.clusters {
		c.watches()
	}
	w.setNodeClocks()
	if f.Back > 0 {
		w.keepBackup()
	}
	for _, k := range faultKinds {
		w.draw(last, k)
	}
	if o := w.opportune; o != nil {
		kills := func(*Faults) time.Duration { return o.Kills }
		w.draw(last, fault{"nodes with a queue", kills, killQueued})
		w.draw(last, fault{"ResourceManagers of queues", kills, killWhileQueued})
	}
}

// setNodeClocks draws the errors of the nodes' clocks at the start.
func (w *World) setNodeClocks() {
	if w.faults.NodeClocks <= 0 {
		return
	}
	rnd := source(w.cfg.Seed, "node clocks")
	for _, c := range w.clusters {
		for _, n := range c.nodes {
			n.skew = wrong(rnd.Uint64(), mostNodeSkew)
		}
	}
}

// draw sets the times of one kind of fault until the end of the run.
func (w *World) draw(last time.Duration, k fault) {
	mean := k.mean(&w.faults)
	if mean <= 0 {
		return
	}
	rnd := source(w.cfg.Seed, "times of "+k.kind)
	for at := warmUp; ; {
		at += time.Duration(-math.Log(1-rnd.Float64()) * float64(mean))
		if at >= last {
			return
		}
		which, down := rnd.Uint64(), time.Duration(rnd.Int64N(int64(w.faults.Down)))
		w.at(origin.Add(at), func() { k.do(w, which, down) })
	}
}

func restartSubcluster(w *World, which uint64, down time.Duration) {
	if c := w.clusters[which%uint64(len(w.clusters))]; c.up {
		w.audit.fault("subclusters restarted")
		c.down()
		w.after(down, c.comeBack)
	}
}

func restartProxy(w *World, which uint64, down time.Duration) {
	if p := w.proxies[which%uint64(len(w.proxies))]; p.up {
		w.audit.fault("proxies restarted")
		w.killProxy(p, down/4) // sooner than AMs lose patience
	}
}

func pauseOne(w *World, which uint64, down time.Duration) {
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
}

func haltOne(w *World, which uint64, down time.Duration) {
	d := time.Duration(which >> 16 % uint64(w.faults.Halted))
	c := w.clusters[which%uint64(len(w.clusters))]
	h, kind := w.proxies[c.index].host, "proxies halted"
	if which>>8%4 > 0 {
		h, kind = c.nodes[which>>10%uint64(len(c.nodes))].host, "nodes halted"
	}
	if h.up && !w.asleep(h) {
		w.audit.fault(kind)
		w.pause(h, d, func() {})
	}
}

func replaceProxy(w *World, which uint64, down time.Duration) {
	if p := w.proxies[which%uint64(len(w.proxies))]; p.up && !w.asleep(p.host) {
		w.audit.fault("proxies taken for dead")
		if which>>8%2 == 0 {
			w.pause(p.host, time.Second+down%longestPause, func() {})
		}
		p.succeeded()
	}
}

func replaceRM(w *World, which uint64, down time.Duration) {
	if c := w.clusters[which%uint64(len(w.clusters))]; c.up && !w.asleep(c.host) {
		w.audit.fault("ResourceManagers taken for dead")
		if which>>8%4 > 0 {
			d := time.Second + down%longestPause
			w.pause(c.host, d, func() { c.turn(d) })
		}
		c.succeeded()
	}
}

func setRMClock(w *World, which uint64, _ time.Duration) {
	if c := w.clusters[which%uint64(len(w.clusters))]; c.up && !w.asleep(c.host) {
		w.audit.fault("clocks set while they run")
		c.setClock(time.Duration(which>>8%uint64(2*mostSkew)) - mostSkew)
	}
}

func setStoreClock(w *World, which uint64, _ time.Duration) {
	w.audit.fault("clocks of the store set")
	w.storeSkew = wrong(which, 2*time.Minute)
	w.mark("store clock", w.storeSkew.Milliseconds(), 0)
}

func setNodeClock(w *World, which uint64, _ time.Duration) {
	c := w.clusters[which%uint64(len(w.clusters))]
	n := c.nodes[which>>8%uint64(len(c.nodes))]
	w.audit.fault("clocks of nodes set")
	n.skew = wrong(which>>16, mostNodeSkew)
	w.mark("node clock", n.number, n.skew.Milliseconds())
}

func killNode(w *World, which uint64, down time.Duration) {
	c := w.clusters[which%uint64(len(w.clusters))]
	if n := c.nodes[which>>8%uint64(len(c.nodes))]; n.up {
		w.audit.fault("nodes killed")
		n.kill()
		w.after(down, n.comeBack)
	}
}

func stallAMs(w *World, which uint64, down time.Duration) {
	until := w.now.Add(time.Second + down%longestPause)
	for i, id := range w.audit.ids {
		if m := w.audit.apps[id].am; m != nil && !m.dead && uint64(i)%4 == which%4 {
			w.audit.fault("AMs stalled")
			m.stalled = until
		}
	}
}

func killOneUAM(w *World, which uint64, _ time.Duration) {
	w.killUAM(which)
}

func stopStore(w *World, _ uint64, down time.Duration) {
	if w.storeAt.up {
		w.audit.fault("store down")
		w.crash(w.storeAt)
		w.after(down, func() { w.boot(w.storeAt) })
	}
}

func wearDisk(w *World, which uint64, down time.Duration) {
	how := slow + disk(which>>8%3)
	w.audit.fault([]string{"disks slow", "disks full, with a reserve", "disks full"}[how-slow])
	w.clusters[which%uint64(len(w.clusters))].wear(how, down)
}

func askOne(w *World, which uint64, _ time.Duration) {
	w.ask(which)
}

func drainByMoving(w *World, which uint64, down time.Duration) {
	c := w.clusters[which%uint64(len(w.clusters))]
	w.audit.fault("members drained by moving")
	w.drain(c, "move")
	w.after(2*down, func() { w.drain(c, "") })
}

func pauseStore(w *World, _ uint64, down time.Duration) {
	if w.storeAt.up && !w.asleep(w.storeAt) {
		w.audit.fault("store paused")
		w.pause(w.storeAt, time.Second+down%longestPause, func() {})
	}
}

func failStore(w *World, _ uint64, down time.Duration) {
	w.audit.fault("store failing")
	w.fallIll(failing, down)
}

func lockStore(w *World, _ uint64, down time.Duration) {
	w.audit.fault("store read only")
	w.fallIll(readOnly, down)
}

func loseStoreWrites(w *World, _ uint64, down time.Duration) {
	w.audit.fault("store losing writes")
	w.loseWrites(down % (10 * time.Second))
}

func emptyStore(w *World, _ uint64, _ time.Duration) {
	if !w.rebuilding {
		w.audit.fault("store emptied")
		w.empty()
	}
}

func takeStoreBack(w *World, which uint64, _ time.Duration) {
	if !w.rebuilding {
		w.audit.fault("store going back")
		w.goBack(which)
	}
}

func killPlanner(w *World, _ uint64, _ time.Duration) {
	if p := w.planner; p != nil && p.at.up {
		w.audit.fault("rebalancers killed")
		w.crash(p.at)
		w.after(time.Hour, func() { w.boot(p.at); p.start() })
	}
}

func restartRouter(w *World, which uint64, down time.Duration) {
	if r := w.routers[which%uint64(len(w.routers))]; r.up {
		w.killRouter(r, down)
	}
}

// queued returns the nodes on which containers wait.
func queued(w *World) (out []*node) {
	for _, c := range w.clusters {
		for _, n := range c.nodes {
			if n.up && n.queue.Waiting() > 0 {
				out = append(out, n)
			}
		}
	}
	return out
}

func killQueued(w *World, which uint64, down time.Duration) {
	if nodes := queued(w); len(nodes) > 0 {
		n := nodes[which%uint64(len(nodes))]
		w.audit.fault("nodes killed with a queue")
		n.kill()
		w.after(down, n.comeBack)
	}
}

func killWhileQueued(w *World, which uint64, down time.Duration) {
	nodes := queued(w)
	if len(nodes) == 0 {
		return
	}
	if c := nodes[which%uint64(len(nodes))].of; c.up {
		w.audit.fault("subclusters restarted while containers waited")
		c.down()
		w.after(down, c.comeBack)
	}
}
