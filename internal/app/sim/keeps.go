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

// DrawKeeps draws which part of a seed's applications keep their containers over the attempts
// of their AMs: none in every second seed.
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

// keeper is what an AM of an application that keeps containers has beside others: its state
// lies in a store of its own, as that of Flink's and of Slider's AMs does, and the AM of the
// next attempt goes on from there once it is registered.
type keeper struct {
	before     *am // of the attempt before this, or of this, for another that began too
	registered bool
	started    map[creel.ContainerID]bool // on their nodes, by their word
	kept       map[creel.ContainerID]bool // that it was told to have kept
}

// latest is the AM whose state is in the store: the last that was registered.
func (m *am) latest() *am {
	for m != nil && m.before != nil && !m.registered {
		m = m.before
	}
	return m
}

// takeOver has an AM that is registered for the first time go on from the state of the one
// before it. What no task of that runs in, as what it was about to give back, it gives back,
// and what may not have been started.
func (m *am) takeOver() {
	if !m.keeps || m.registered {
		return
	}
	from := m.latest()
	m.registered, m.kept = true, map[creel.ContainerID]bool{}
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
		if m.w.audit.vanished[id] {
			m.unheard(id, m.w.clusters[id.Epoch()/epochStep-1], false)
		}
	}
}

// keep takes the containers of attempts before this one that live on. It gives back those of
// which no state says what runs in them, as what was granted when the AM died.
func (m *am) keep(previous []*pb.ContainerProto) {
	for _, c := range previous {
		id := pb.ToContainerID(c.GetId())
		m.w.mark("kept", id.ID, int64(m.attempt.Attempt))
		if m.w.cfg.Log != nil {
			m.w.say("%s is told that it has kept %s", m.attempt, id)
		}
		m.w.audit.keptTold(m, id)
		if _, held := m.held[id]; !held && m.keeps {
			m.say(workload.Steps{Releases: []creel.ContainerID{id}})
		}
	}
}

// mostDeaths is how many attempts of an application die by themselves, fewer than it may have.
const mostDeaths = 3

// mortal has an AM that keeps containers die at a drawn time, in some part of the cases while
// the ResourceManager or the proxy of its home dies or stands still.
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

// keptOn: an AM of a further attempt is told of each container that it has kept and that runs
// on, or of its end; where its ResourceManager was restarted meanwhile it may know it no more.
func (a *auditor) keptOn(m *am, id creel.ContainerID) {
	of := int(id.Epoch()/epochStep - 1)
	process := a.w.clusters[of].process
	a.w.after(releaseTime, func() {
		_, runs := a.running[id]
		_, holds := m.held[id]
		if m.dead || !runs || !holds || a.w.clusters[of].process != process || a.vanished[id] {
			return
		}
		a.check(m.kept[id], "%s runs since an attempt before %s, which was told of neither it nor its end",
			id, m.attempt)
	})
}

// keptTold: who keeps no containers is told of none, and who does of none whose end it knows.
func (a *auditor) keptTold(m *am, id creel.ContainerID) {
	a.check(m.keeps, "%s keeps no containers, and is told of %s", m.attempt, id)
	a.check(id.Attempt.Application == m.attempt.Application, "%s is told to have kept %s", m.attempt, id)
	_, runs := a.running[id]
	_, told := m.told[id]
	a.check(!told || runs, "%s knows that %s has ended, and is told to have kept it", m.attempt, id)
	if m.kept != nil {
		m.kept[id] = true
	}
}

// vanish notes that containers are gone of which nobody may be told, for who knew of them
// is gone with them, and has their AM, or the next one, notice that some day.
func (a *auditor) vanish(m *am, id creel.ContainerID, of *cluster, known bool) {
	if m == nil {
		return
	}
	if m.keeps {
		a.vanished[id] = true
	}
	if !m.dead {
		m.unheard(id, of, known)
	}
}
