// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/internal/yarnpb"
)

// take adds the AM's request to the asks and to the links' outboxes. out is the AM's next answer.
func (l *ledger) take(req *yarnpb.AllocateRequestProto, out *yarnpb.AllocateResponseProto, now time.Time) {
	early := l.early(req, out)
	var blank []*link
	if l.restored {
		blank = l.links.filter((*link).hasUAM)
	}
	for _, a := range req.GetAsk() {
		g := l.ask(a, blank, early, now)
		if g.need < 0 {
			l.withdraw(g, out, now)
		}
	}
	l.sort()
	// Only a single scheduler can enforce constraints between containers, so these requests go to home.
	l.scheduling.add(req.GetSchedulingRequests())
	if !l.spoken {
		l.spoken = true
		l.withdrawUnasked(out, now)
	}
	for _, id := range req.GetRelease() {
		l.release(id, now)
	}
	if b := req.GetBlacklistRequest(); b != nil {
		l.blacken(b)
	}
	l.change(req.GetUpdateRequests())
}

// blacken takes a change of the blacklist. A host or rack is blacklisted in all members. This has no effect in members
// that do not have it.
func (l *ledger) blacken(b *yarnpb.ResourceBlacklistRequestProto) {
	for _, name := range b.GetBlacklistAdditions() {
		l.blacklist[name] = true
	}
	for _, name := range b.GetBlacklistRemovals() {
		delete(l.blacklist, name)
	}
	for _, m := range l.links.members {
		if m.inUse() {
			m.blacken(b)
			m.news = true
		}
	}
}

// early counts grants without a group that wait to be sent to the AM. A UAM that outlived a proxy got them for that
// proxy's asks. The returned function returns the number of them that belong to a new group: of its execution type, or
// of a type for which the request has no ask.
func (l *ledger) early(req *yarnpb.AllocateRequestProto, out *yarnpb.AllocateResponseProto) func(groupKey) int {
	if len(out.AllocatedContainers) == 0 {
		return func(groupKey) int { return 0 }
	}
	asked := map[groupKey]bool{}
	for _, a := range req.GetAsk() {
		asked[keyOfAsk(a)] = true
	}
	counts := map[groupKey]int{}
	for _, c := range out.AllocatedContainers {
		if l.of(c, nil) != nil {
			continue
		}
		k := keyOfGrant(c)
		for _, other := range executions {
			if !asked[k] {
				k.execution = other
			}
		}
		counts[k]++
	}
	return func(k groupKey) int {
		n := counts[k]
		delete(counts, k)
		return n
	}
}

// change passes requests to change containers to the members that granted these, or to home if the member is unknown.
// While a UAM has not reported its containers to a restarted proxy, its member may have granted the container. Then
// the request waits.
func (l *ledger) change(wanted []*yarnpb.UpdateContainerRequestProto) {
	unsure := l.restored && l.links.any(func(m *link) bool { return m.unheard() && !m.closed })
	for _, u := range wanted {
		o, m := l.held.live[containerID(u.GetContainerId())], l.links.home
		switch {
		case o != nil:
			m = o.by
		case unsure && len(l.changes) < mostReturned:
			l.changes = append(l.changes, u)
			continue
		}
		m.update(u)
		m.news = true
	}
}

// passOnChanges tries again to pass on the waiting requests.
func (l *ledger) passOnChanges() {
	if waiting := l.changes; len(waiting) > 0 {
		l.changes = nil
		l.change(waiting)
	}
}

// release returns a container to the member that granted it.
func (l *ledger) release(p *yarnpb.ContainerIdProto, now time.Time) {
	id, m := containerID(p), l.links.home
	if o, ok := l.held.live[id]; ok {
		o.released, m = true, o.by
	} else if l.restored && len(l.returned) < mostReturned && l.links.any((*link).unheard) {
		// A UAM that has not reported its containers to this proxy yet may have granted it.
		if l.returned == nil {
			l.returned = map[creel.ContainerID]struct{}{}
		}
		l.returned[id] = struct{}{}
	}
	if !m.shut(now, l.cfg.HomeWaitMost) || !m.releases(id) { // duplicates are searched only while home is away
		m.release = append(m.release, p)
	}
	m.news = true
}

// withdraw removes grants that wait for the AM's next answer and that it no longer wants, the latest first.
func (l *ledger) withdraw(g *group, out *yarnpb.AllocateResponseProto, now time.Time) {
	l.withdrawPlaced(g, now)
	for i := len(out.AllocatedContainers) - 1; i >= 0 && g.need < 0; i-- {
		c := out.AllocatedContainers[i]
		o := l.held.live[containerID(c.GetId())]
		if l.of(c, o) != g || g.unsent == 0 {
			continue
		}
		out.AllocatedContainers = slices.Delete(out.AllocatedContainers, i, i+1)
		g.need++
		g.unsent--
		if o != nil {
			o.surplus, o.untold = true, false
		}
		l.release(c.GetId(), now)
	}
	g.need = max(0, g.need)
}

// unasked reports whether the AM does not wait for a grant without a group. An earlier session asked for it, or its
// group was removed long ago. The AM repeated its open asks when it registered.
func (l *ledger) unasked(m *link) bool {
	return l.spoken && (!m.home || l.restored && !l.scheduling.used)
}

// withdrawUnasked releases containers that were granted before the AM's asks and match none of them.
func (l *ledger) withdrawUnasked(out *yarnpb.AllocateResponseProto, now time.Time) {
	out.AllocatedContainers = slices.DeleteFunc(out.AllocatedContainers, func(c *yarnpb.ContainerProto) bool {
		o := l.held.live[containerID(c.GetId())]
		if o == nil || l.of(c, o) != nil || !l.unasked(o.by) {
			return false
		}
		o.surplus, o.untold = true, false
		l.release(c.GetId(), now)
		return true
	})
}

// keepWanted leaves in the answer the grants that the AM wants, and releases the others. The AM wants none before it is
// running, and after it has finished.
func (l *ledger) keepWanted(m *link, r *yarnpb.AllocateResponseProto, now time.Time, running bool) {
	kept := r.AllocatedContainers[:0]
	for _, c := range r.AllocatedContainers {
		id := containerID(c.GetId())
		if l.held.knows(id) {
			if o := l.held.live[id]; o != nil && o.by != m {
				// Two ResourceManagers of the same epoch issued the same id. Only one of the two containers can be
				// passed on.
				m.release = append(m.release, c.GetId())
				m.news = true
			}
			continue
		}
		o := &heldContainer{by: m, id: c.GetId(), swapped: l.swaps(c, m)}
		l.held.hold(id, o)
		g := l.of(c, o)
		wanted := g == nil && !l.unasked(m) || g != nil && g.granted(m, c.GetNodeId().GetHost(), now)
		if wanted && running {
			if g != nil {
				l.waits.Add(time.Duration(now.UnixNano() - g.asked))
				l.granted = true
			} else if m.home {
				l.scheduling.placed(c.GetPriority(), c.GetAllocationRequestId(), 1)
			}
			o.untold, m.used = true, true
			kept = append(kept, c)
			continue
		}
		o.surplus = true
		m.release = append(m.release, c.GetId())
		m.news = true
	}
	m.quiet = len(r.AllocatedContainers) == 0
	clear(r.AllocatedContainers[len(kept):])
	r.AllocatedContainers = kept
}

// keepCompletions leaves in the answer the completions that the AM has not received.
func (l *ledger) keepCompletions(m *link, r, out *yarnpb.AllocateResponseProto, now time.Time) {
	kept := r.CompletedContainerStatuses[:0]
	for _, st := range r.CompletedContainerStatuses {
		id := containerID(st.GetContainerId())
		c := l.held.live[id]
		if c != nil && c.by != m {
			continue
		}
		if l.completed(id, c, now, &r.AllocatedContainers, &out.AllocatedContainers) {
			kept = append(kept, st)
		}
	}
	clear(r.CompletedContainerStatuses[len(kept):])
	r.CompletedContainerStatuses = kept
}

// completed records that a container has completed; c is its entry, nil if unknown. It reports whether the AM must be
// informed. It need not if it was informed before, or never received the container. unread are the grants
// that the AM has not received.
func (l *ledger) completed(
	id creel.ContainerID, c *heldContainer, now time.Time, unread ...*[]*yarnpb.ContainerProto,
) bool {
	if first := l.held.complete(id, c); !first || c == nil {
		return first
	}
	c.by.worked = now
	if c.untold {
		l.takeBack(id, c, unread)
	}
	return !c.surplus && !c.untold
}

// takeBack removes a completed container from the grants that the AM has not received. An AM processes completions
// before grants, so with both in one answer it would wait for the container for ever. The ask is open again: one more
// container is wanted.
func (l *ledger) takeBack(id creel.ContainerID, o *heldContainer, lists []*[]*yarnpb.ContainerProto) {
	for _, list := range lists {
		i := slices.IndexFunc(*list, func(c *yarnpb.ContainerProto) bool { return containerID(c.GetId()) == id })
		if i < 0 {
			continue
		}
		grant := (*list)[i]
		*list = slices.Delete(*list, i, i+1)
		if g := l.of(grant, o); g != nil {
			g.ungrant(grant.GetNodeId().GetHost())
		}
		return
	}
}

// takeFound records the containers that a restarted member reports when their nodes come back. It leaves in the
// answer only containers that the AM must be informed of: not those granted to this attempt, as far as is known. ends
// reports that containers end with their attempt.
func (l *ledger) takeFound(m *link, r *yarnpb.AllocateResponseProto, ends bool) {
	var left []*yarnpb.ContainerProto
	for _, c := range r.ContainersFromPreviousAttempts {
		if l.learn(m, c.GetId()) {
			left = append(left, c)
		}
	}
	switch {
	case m.home: // home reports only containers of earlier attempts
	case !ends:
	case l.restored:
		left = nil // they are this attempt's: the proxy before this one reported them
	default:
		l.withdrawKept(left)
		left = nil
	}
	r.ContainersFromPreviousAttempts = left
}

// learn records a container that a member granted to an earlier session. If the AM released the container before its
// member was known, it is released now. learn reports whether the container is new.
func (l *ledger) learn(m *link, p *yarnpb.ContainerIdProto) bool {
	id := containerID(p)
	if l.held.knows(id) {
		return false
	}
	o := &heldContainer{by: m, id: p}
	l.held.hold(id, o)
	if _, o.released = l.returned[id]; o.released {
		delete(l.returned, id)
		m.release, m.news = append(m.release, p), true
	}
	return true
}

// withdrawKept releases containers of earlier attempts that end with their attempt.
func (l *ledger) withdrawKept(left []*yarnpb.ContainerProto) {
	for _, c := range left {
		if o := l.held.live[containerID(c.GetId())]; o != nil && !o.surplus && !o.released {
			o.surplus = true
			o.by.release, o.by.news = append(o.by.release, o.id), true
		}
	}
}

// renew prepares for sending all asks, releases and the blacklist to the member again. Releases of containers that an
// earlier session received, and this one does not know, are in no other place than the outbox.
func (l *ledger) renew(m *link) {
	l.forget(m)
	m.blackAdd, m.blackDel = nil, nil
	for name := range l.blacklist {
		m.blackAdd = append(m.blackAdd, name)
	}
	slices.Sort(m.blackAdd)
	m.release = slices.DeleteFunc(m.release, func(p *yarnpb.ContainerIdProto) bool {
		return l.held.knows(containerID(p))
	})
	for _, id := range l.held.of(m) {
		if o := l.held.live[id]; o.released || o.surplus {
			m.release = append(m.release, o.id)
		}
	}
}

// end records completions that an earlier proxy has recorded.
func (l *ledger) end(completions []*yarnpb.ContainerStatusProto) {
	for _, st := range completions {
		id := containerID(st.GetContainerId())
		l.held.complete(id, l.held.live[id])
	}
}

// due reports whether a call to a member is due without a heartbeat of the AM. silent reports that the AM may be dead.
func (l *ledger) due(m *link, now time.Time, silent bool) bool {
	idle := now.Sub(m.call.sent)
	if m.news {
		m.news = !m.isEmpty() || len(m.fresh) > 0 || l.differs(m, m.quiet)
	}
	if m.home {
		return m.news && idle >= l.cfg.UAMHeartbeat && !silent
	}
	if idle >= l.cfg.KeepAlive {
		return true
	}
	if idle < l.cfg.UAMHeartbeat || silent {
		return false
	}
	return m.news || l.outstanding(m) > 0
}

// fill moves the content for a member into its next request. While the AM is silent, UAMs get no asks: they were
// placed by the view of the AM's last heartbeat.
func (l *ledger) fill(a *yarnpb.AllocateRequestProto, m *link, now time.Time, silent bool) {
	unsaid := !m.home && silent
	if !unsaid {
		a.Ask = l.collect(m, m.quiet)
	}
	m.moveTo(a)
	if m.home {
		a.SchedulingRequests = l.scheduling.send()
	}
	m.called, m.news = false, unsaid || m.singly
	if len(a.Ask)+len(a.Release)+len(a.UpdateRequests) > 0 {
		m.worked = now
	}
}

// lose records that a member's UAM has ended with its containers, and marks all asks for a new split. It adds the
// completions to the AM's next answer.
func (l *ledger) lose(m *link, why string, out *yarnpb.AllocateResponseProto, now time.Time) {
	l.unplace(m)
	for _, id := range l.held.of(m) {
		o := l.held.live[id]
		if l.completed(id, o, now, &out.AllocatedContainers) {
			out.CompletedContainerStatuses = append(out.CompletedContainerStatuses, lostStatus(o.id, why))
		}
	}
	for _, g := range l.groups {
		for _, ln := range g.lines {
			delete(ln.at, m)
		}
	}
	l.spoil()
}

// spoil marks all asks for a new split.
func (l *ledger) spoil() {
	for _, g := range l.groups {
		g.dirty = true
	}
}

// delivered records that the AM gets an answer. It removes the containers of earlier attempts that have ended: an AM
// processes completions before them (see takeBack).
func (l *ledger) delivered(r *yarnpb.AllocateResponseProto) {
	for _, c := range r.AllocatedContainers {
		o := l.held.live[containerID(c.GetId())]
		if g := l.of(c, o); g != nil && g.unsent > 0 {
			g.unsent--
		}
		if o != nil {
			o.untold = false
		}
	}
	r.ContainersFromPreviousAttempts = slices.DeleteFunc(
		r.ContainersFromPreviousAttempts,
		func(c *yarnpb.ContainerProto) bool { return l.held.live[containerID(c.GetId())] == nil },
	)
}

// takeWaits returns the waiting times of the containers granted since the last call of takeWaits; false if there were
// none.
func (l *ledger) takeWaits() (waitstats.Histogram, bool) {
	if !l.granted {
		return waitstats.Histogram{}, false
	}
	h := l.waits
	l.waits, l.granted = waitstats.Histogram{}, false
	return h, true
}
