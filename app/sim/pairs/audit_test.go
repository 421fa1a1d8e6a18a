// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// audit checks the promises of a run, and counts its events.
type audit struct {
	w       *world
	newest  *active // the newest one that has answered
	started map[creel.ContainerID]*node
	granted map[creel.ContainerID]*am

	acknowledged, takeovers, reported, unsaid int
}

func newAudit(w *world) audit {
	return audit{w: w, started: map[creel.ContainerID]*node{}, granted: map[creel.ContainerID]*am{}}
}

// lossy reports whether Redis has lost groups in this run. A loss may take the number of a start with it, and with it
// the numbers of containers.
func (u *audit) lossy() bool {
	return len(u.w.redis.lost) > 0 || u.w.redis.former != nil && !u.w.redis.wait
}

func (u *audit) leads(a *active) {
	u.takeovers++
	a.check()
}

// answers checks an answer that leaves a ResourceManager.
func (u *audit) answers(a *active) {
	switch {
	case u.newest == nil || u.newest == a || a.serial > u.newest.serial && !u.w.now.Before(u.w.redis.unsafe):
		u.newest = a
	case u.w.now.Before(u.w.redis.unsafe): // Redis has lost the lease, or there are two of it
	case a.serial < u.newest.serial:
		u.w.breach("%s answers after %s was the leader", a.p.name, u.newest.p.name)
	}
}

// recovers checks the state with which a process takes over.
func (u *audit) recovers(a *active, r *rm.Recover) {
	if s := u.w.redis; !s.wait && s.former != nil && s.of(a.p.h.index) == s.former {
		return // all of its changes will be lost
	}
	records := map[creel.ApplicationID]*rm.AppRecord{}
	for i := range r.Apps {
		records[r.Apps[i].Submission.ID] = &r.Apps[i]
	}
	for _, x := range u.w.apps {
		have := records[x.id]
		missing := x.acknowledged && have == nil
		if x.finished && (have == nil || !have.State.Ended()) {
			missing = true
		}
		if !missing {
			continue
		}
		if !u.excuses(x.id) {
			u.w.breach("%s takes over without %s (acknowledged %v, finished %v)",
				a.p.name, x.id, x.acknowledged, x.finished)
		}
		x.lost = true
	}
}

// excuses reports whether Redis has lost a change of an application.
func (u *audit) excuses(id creel.ApplicationID) bool {
	for key := range u.w.redis.lostKeys {
		if turn.IsOf(key, id) {
			return true
		}
	}
	former := u.w.redis.former
	if former == nil || u.w.redis.wait {
		return false
	}
	for l := former.data.tail; l != nil && l != common(l, u.w.redis.primary.data.tail); l = l.before {
		for _, key := range l.names {
			if turn.IsOf(key, id) {
				return true
			}
		}
	}
	return false
}

// silent is a loss that a deposed holder did not notice.
func (u *audit) silent(a *active) {
	u.unsaid++
	u.w.breach("%s is fenced by a process that lacks its groups, and says nothing of it", a.p.name)
}

// launches checks that an application gets no second attempt.
func (u *audit) launches(a *active, id creel.AttemptID) {
	x := u.w.apps[id.Application.ID-1]
	x.attempts[id] = a.identifier
	if id.Attempt > 1 && x.running != nil && !u.lossy() {
		u.w.breach("%s launches %s", a.p.name, id)
	}
}

// runs checks that an application has one AM.
func (u *audit) runs(m *am) {
	if r := m.app.running; r != nil && !u.lossy() {
		u.w.breach("%s gets another AM", m.app.id)
	}
}

// grants checks that no container is granted twice.
func (u *audit) grants(id creel.ContainerID, m *am) {
	if u.granted[id] != nil && !u.lossy() {
		u.w.breach("%s is granted twice", id)
	}
	u.granted[id] = m
}

// starts checks that no container is started twice.
func (u *audit) starts(id creel.ContainerID, n *node) {
	if u.started[id] != nil && !u.lossy() {
		u.w.breach("%s is started on %s and on %s", id, u.started[id].id, n.id)
	}
	u.started[id] = n
}

// stopped checks an order to end a container.
func (u *audit) stopped(b *box, why string) {
	m := b.am
	if b.ended || m.dead || m.app.finished || m.released[b.id] || m.app.lost || u.lossy() || m.left == 0 {
		return
	}
	u.w.breach("a node ends %s: %s", b.id, why)
}
