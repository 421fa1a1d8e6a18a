// SPDX-License-Identifier: Apache-2.0

package rm

// Activation: an application in a queue waits until its master may run, which
// the queue's share for masters, the user's part of it, and the numbers of
// applications at once decide. Only then does it ask for containers.

// enqueue puts an application's new attempt in line.
func (m *Machine) enqueue(a *app) {
	u, l := a.user, a.queue.leaf
	l.pendingApps++
	m.watch(a.queue)
	u.pending.push(a)
	if u.pendSlot == 0 {
		l.pending.push(u)
	} else {
		l.pending.fix(u)
	}
	m.activateLater(a.queue)
}

func (m *Machine) dequeue(a *app) {
	if a.pendSlot == 0 {
		return
	}
	u, l := a.user, a.queue.leaf
	l.pendingApps--
	u.pending.remove(a)
	if u.pending.len() == 0 {
		if u.pendSlot != 0 {
			l.pending.remove(u)
		}
	} else {
		l.pending.fix(u)
	}
}

// activateApps starts as many as may start, in order; a user who may not is
// passed over, a queue that may not ends the round.
func (m *Machine) activateApps(q *queue) {
	l := q.leaf
	var aside []*user
	for l.pending.len() > 0 {
		u := l.pending.top()
		a := u.pending.top()
		limit, where := m.mayActivate(a)
		a.stuck = limit
		if limit == LimitNone {
			m.dequeue(a)
			m.start(a)
			continue
		}
		if limit == LimitUserAM || where == nil {
			l.pending.remove(u)
			aside = append(aside, u)
			continue
		}
		break
	}
	for _, u := range aside {
		if u.pending.len() > 0 && u.pendSlot == 0 {
			l.pending.push(u)
		}
	}
}

// mayActivate gives the limit that keeps a's master from starting, and the
// queue whose limit it is.
func (m *Machine) mayActivate(a *app) (Limit, *queue) {
	for q := a.queue; q != nil; q = q.parent {
		if q.maxRunning > 0 && q.running >= q.maxRunning {
			return LimitParallelApps, q
		}
	}
	if most := m.userMaxApps(a.sub.User); most > 0 {
		if n := m.userRunning[a.sub.User]; n != nil && *n >= most {
			return LimitParallelApps, nil
		}
	}
	if a.amSize == nil {
		return LimitNone, nil
	}
	q := a.queue
	all, one := m.masterLimit(q, inDecisions)
	with := q.leaf.amUsed
	with.add(&a.amSize.v)
	// One master may always start, or a small queue would never run anything.
	if !m.t.fits(&with, &all) && !q.leaf.amUsed.isZero() {
		return LimitAM, q
	}
	with = a.user.amUsed
	with.add(&a.amSize.v)
	if !m.t.fits(&with, &one) && !a.user.amUsed.isZero() {
		return LimitUserAM, q
	}
	return LimitNone, nil
}

func (m *Machine) userMaxApps(user string) int {
	for _, u := range m.tree.spec.UserMaxApps {
		if u.User == user {
			return u.Max
		}
	}
	return m.tree.spec.UserMaxAppsDefault
}

// start activates an application and asks for its master's container.
func (m *Machine) start(a *app) {
	m.appChanged(a)
	a.activated = true
	a.user.running++
	for q := a.queue; q != nil; q = q.parent {
		q.running++
	}
	n := m.userRunning[a.sub.User]
	if n == nil {
		n = new(int)
		m.userRunning[a.sub.User] = n
	}
	*n++
	if a.amSize != nil {
		m.chargeMaster(a, 1)
		if t := a.current; t.state == tScheduled {
			m.askMaster(t)
		}
	}
	m.serve(a)
}

func (m *Machine) chargeMaster(a *app, sign int64) {
	a.queue.leaf.amUsed.addTimes(&a.amSize.v, sign)
	a.user.amUsed.addTimes(&a.amSize.v, sign)
	a.amUsed.addTimes(&a.amSize.v, sign)
}

// stopRunning takes an application out of those that run, or of the line.
func (m *Machine) stopRunning(a *app) {
	m.dequeue(a)
	if !a.activated {
		return
	}
	m.appChanged(a)
	a.activated = false
	a.user.running--
	blocked := false
	for q := a.queue; q != nil; q = q.parent {
		blocked = blocked || q.maxRunning > 0 && q.running >= q.maxRunning
		q.running--
	}
	if n := m.userRunning[a.sub.User]; n != nil {
		blocked = blocked || m.userMaxApps(a.sub.User) > 0
		if *n--; *n == 0 {
			delete(m.userRunning, a.sub.User)
		}
	}
	if a.amSize != nil {
		m.chargeMaster(a, -1)
	}
	m.enroll(a)
	m.activateLater(a.queue)
	if blocked {
		// Others under the same bound may be in other leaves.
		for _, q := range m.tree.all {
			if q.leaf != nil && !q.removed {
				m.activateLater(q)
			}
		}
	}
}
