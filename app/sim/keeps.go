// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// DrawKeeps draws the fraction of a seed's applications that retain their containers over their attempts: zero in
// every second seed.
func DrawKeeps(seed uint64) float64 {
	rnd := source(seed, "keeps")
	if rnd.IntN(2) == 0 {
		return 0
	}
	return math.Round(100*(0.1+0.5*rnd.Float64())) / 100
}

// keeps reports whether a job's application keeps its containers over attempts.
func (w *World) keeps(job int) bool {
	return w.cfg.Keeps > 0 && source(w.cfg.Seed+uint64(job), "keeps containers").Float64() < w.cfg.Keeps
}

// keeper is the additional state of an AM whose application keeps containers. The state is in a separate store, as
// for Flink's and Slider's AMs, and the next attempt's AM continues from it once registered.
type keeper struct {
	before     *am // of the previous attempt, or of this one if a second AM of it started
	registered bool
	started    map[creel.ContainerID]bool // on their nodes, according to the nodes
	kept       map[creel.ContainerID]bool // containers reported to it as retained
}

// latest returns the AM whose state is in the store: the last registered one.
func (m *am) latest() *am {
	for m != nil && m.before != nil && !m.registered {
		m = m.before
	}
	return m
}

// takeOver makes a newly registered AM continue from the previous AM's state. It releases containers without a task,
// such as containers about to be released or that may not have been started.
func (m *am) takeOver() {
	if m.registered {
		return
	}
	from := m.latest()
	if m.registered = true; !m.keeps {
		return // its own state, which is empty, is the latest one
	}
	m.kept = map[creel.ContainerID]bool{}
	m.before = nil
	if from == m {
		return
	}
	m.play = from.play.Successor()
	for _, id := range slices.SortedFunc(maps.Keys(from.held), creel.ContainerID.Compare) {
		m.held[id] = from.held[id]
		if !m.play.Runs(id) {
			m.say(workload.Steps{Releases: []creel.ContainerID{id}})
			continue
		}
		if !from.started[id] {
			m.say(m.play.StartFailed(id))
			continue
		}
		m.started[id] = true
		m.w.audit.fault("containers that the next attempt has kept")
		m.w.audit.keptOn(m, id)
		if m.w.audit.happened(id, hasVanished) {
			m.unheard(id, m.w.clusters[id.Epoch()/epochStep-1], false)
		}
	}
}

// keep takes over the live containers of previous attempts. It releases containers without a task in the state, such
// as those granted when the AM died.
func (m *am) keep(previous []*pb.ContainerProto) {
	for _, c := range previous {
		id := pb.ToContainerID(c.GetId())
		m.w.mark("kept", id.ID, int64(m.attempt.Attempt))
		if m.w.cfg.Log != nil {
			m.w.say("%s receives the kept container %s", m.attempt, id)
		}
		m.w.audit.keptTold(m, id)
		if _, held := m.held[id]; !held && m.keeps {
			m.say(workload.Steps{Releases: []creel.ContainerID{id}})
		}
	}
}

// mostDeaths is the number of an application's attempts that die by themselves, fewer than the permitted number.
const mostDeaths = 3

// mortal makes an AM that retains containers die at a drawn time, in some cases while the ResourceManager or the
// proxy of its home dies or is paused.
func (m *am) mortal() {
	w := m.w
	job := w.audit.apps[m.attempt.Application].job
	rnd := source(w.cfg.Seed+uint64(job)<<16+uint64(m.attempt.Attempt), "deaths of AMs that keep containers")
	if !m.keeps || m.attempt.Attempt > mostDeaths || rnd.IntN(4) == 0 {
		return
	}
	lives := time.Duration(float64(500*time.Millisecond) * math.Exp(rnd.Float64()*math.Log(600))) // up to 5 min
	m.later(lives, func() {
		w.audit.fault("AMs that keep containers died")
		m.exit(1)
	})
	which, at := rnd.IntN(6), lives+time.Duration(rnd.Int64N(int64(10*time.Second)))-5*time.Second
	down := time.Duration(rnd.Int64N(int64(30 * time.Second)))
	w.after(max(0, at), func() {
		c, p := w.clusters[m.home], m.proxy()
		switch {
		case !w.faulty:
		case which == 0 && w.faults.Subcluster > 0 && c.up:
			w.audit.fault("subclusters restarted")
			c.down()
			w.after(down, c.comeBack)
		case which == 1 && w.faults.Pause > 0 && c.up && !w.asleep(c.host):
			w.audit.fault("subclusters paused")
			d := time.Second + down%longestPause
			w.pause(c.host, d, func() { c.turn(d) })
		case which == 2 && w.faults.Proxy > 0 && p.up:
			w.audit.fault("proxies restarted")
			w.killProxy(p, down/4)
		}
	})
}

// keptOn checks that an AM of a later attempt receives each retained container that still runs, or its completion. If
// its ResourceManager was restarted meanwhile it may not know the container.
func (a *auditor) keptOn(m *am, id creel.ContainerID) {
	of := int(id.Epoch()/epochStep - 1)
	process := a.w.clusters[of].process
	a.w.after(releaseTime, func() {
		_, runs := a.running[id]
		_, holds := m.held[id]
		if m.dead || !runs || !holds || a.w.clusters[of].process != process || a.happened(id, hasVanished) {
			return
		}
		a.check(m.kept[id], "%s runs since before %s, which received neither it nor its completion",
			id, m.attempt)
	})
}

// keptTold checks that an AM that retains no containers receives none, and that another receives none whose
// completion it knows.
func (a *auditor) keptTold(m *am, id creel.ContainerID) {
	a.check(m.keeps, "%s keeps no containers, but receives %s", m.attempt, id)
	a.check(id.Attempt.Application == m.attempt.Application, "%s receives as kept %s", m.attempt, id)
	_, runs := a.running[id]
	_, told := m.told[id]
	a.check(!told || runs, "%s knows that %s has ended, but receives it as kept", m.attempt, id)
	if m.kept != nil {
		m.kept[id] = true
	}
}

// vanish records containers whose completion may never be reported, because the processes that knew them are gone. It
// also makes their AM, or the next one, notice that eventually.
func (a *auditor) vanish(m *am, id creel.ContainerID, of *cluster, known bool) {
	if m == nil {
		return
	}
	if m.keeps {
		a.happens(id, hasVanished)
	}
	if !m.dead {
		m.unheard(id, of, known)
	}
}
