// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// ReloadQueues replaces the queue specification while everything runs. A tree
// that is wrong, changes the scheduler or the calculator, or takes away a queue
// that is in use, is refused as a whole and the old one stays.
func (m *Machine) ReloadQueues(now time.Time, spec queues.Spec) error {
	m.at(now)
	if err := spec.Validate(); err != nil {
		return err
	}
	if spec.Scheduler != m.tree.spec.Scheduler || spec.Calculator != m.tree.spec.Calculator {
		return invalid(
			"cannot reload the queues",
			"the scheduler or its resource calculator would change",
			"restart the ResourceManager for that",
		)
	}
	listed := map[creel.QueuePath]*queues.Queue{}
	flatten(&spec.Root, creel.RootQueue, listed)
	for _, q := range m.tree.all {
		s := listed[q.path]
		leaf := s != nil && len(s.Children) == 0 && s.AutoCreate == nil
		switch {
		case q.removed:
		case s == nil && q.dynamic:
			if p := listed[q.parent.path]; p == nil && !q.parent.dynamic ||
				p != nil && len(p.Children) == 0 && p.AutoCreate == nil && spec.Scheduler == queues.CapacityScheduler {
				if q.leaf != nil && q.leaf.apps > 0 {
					return refuse(q, "its parent would no longer have it")
				}
			}
		case s == nil && q.leaf != nil && (q.leaf.apps > 0 || q.containers > 0):
			return refuse(q, fmt.Sprintf("it has %d applications", q.leaf.apps))
		case s == nil && q.leaf != nil && spec.Scheduler == queues.CapacityScheduler && q.state == creel.QueueRunning:
			return refuse(q, "it is not stopped")
		case s != nil && q.leaf != nil && !leaf && q.leaf.apps > 0:
			return refuse(q, "it would become a parent and has applications")
		case s != nil && q.leaf == nil && leaf && len(q.children) > 0 && q.containers > 0:
			return refuse(q, "it would become a leaf and its children are in use")
		}
	}
	kept := spec
	m.tree.spec, m.cfg.Queues = &kept, kept
	m.tree.names = map[string]*queue{}
	old := m.tree.all
	m.tree.all = nil
	m.mergeQueue(&m.tree.spec.Root, m.tree.root, nil)
	alive := map[*queue]bool{}
	for _, q := range m.tree.all {
		alive[q] = true
	}
	for _, q := range old {
		if !alive[q] {
			q.removed = true
			m.stop(&q.idleTimer)
			if m.tree.byPath[q.path] == q {
				delete(m.tree.byPath, q.path)
			}
			if q.slot != 0 {
				q.parent.ready.remove(q)
			}
			if q.parked {
				q.parked = false
				q.parent.parkedBelow--
			}
		}
	}
	m.resize()
	m.settle()
	return nil
}

func refuse(q *queue, why string) error {
	return &creel.Error{
		Kind: creel.ErrConflict,
		What: fmt.Sprintf("Queue %s cannot be deleted or changed", q.path),
		Why:  why,
		Try:  "stop the queue, wait until it is empty, and reload",
	}
}

func flatten(q *queues.Queue, path creel.QueuePath, out map[creel.QueuePath]*queues.Queue) {
	out[path] = q
	for i := range q.Children {
		flatten(&q.Children[i], path.Child(q.Children[i].Name), out)
	}
}

// mergeQueue gives a live queue its new specification, and those below it;
// missing ones are made. Queues made on demand stay.
func (m *Machine) mergeQueue(spec *queues.Queue, q *queue, parent *queue) *queue {
	if q == nil {
		return m.addQueue(spec, parent)
	}
	q.spec, q.dynamic = spec, false
	m.readd(q)
	before := q.children
	q.children = nil
	for i := range spec.Children {
		var old *queue
		for _, c := range before {
			if c.name == spec.Children[i].Name {
				old = c
			}
		}
		q.children = append(q.children, m.mergeQueue(&spec.Children[i], old, q))
	}
	for _, c := range before {
		if c.dynamic && !containsName(spec.Children, c.name) &&
			(len(spec.Children) > 0 || spec.AutoCreate != nil || m.tree.spec.Scheduler == queues.FairScheduler) {
			m.keepDynamic(c)
			q.children = append(q.children, c)
		}
	}
	q.sum()
	leaf := len(q.children) == 0 && spec.AutoCreate == nil
	switch {
	case leaf && q.leaf == nil:
		q.becomeLeaf()
	case !leaf:
		q.leaf = nil
	default:
		q.relabel()
	}
	return q
}

// readd puts a queue that stays into the new order.
func (m *Machine) readd(q *queue) {
	q.serial = len(m.tree.all)
	m.tree.all = append(m.tree.all, q)
	q.configure()
}

func (m *Machine) keepDynamic(q *queue) {
	m.readd(q)
	for _, c := range q.children {
		m.keepDynamic(c)
	}
	if q.leaf != nil {
		q.relabel()
	}
}

// relabel takes over the new order of applications and weights of users.
func (q *queue) relabel() {
	if old, taken := q.m.tree.names[q.name]; taken && old != q {
		q.m.tree.names[q.name] = nil
	} else {
		q.m.tree.names[q.name] = q
	}
	less := q.appOrder()
	q.leaf.weights, q.leaf.allWeights = 0, 0
	for _, u := range q.leaf.userList {
		u.weight = 1
		for _, w := range q.spec.UserWeights {
			if w.User == u.name && w.Weight > 0 {
				u.weight = w.Weight
			}
		}
		q.leaf.allWeights += u.weight
		if u.waitingApps > 0 {
			q.leaf.weights += u.weight
		}
		u.apps.less = less
		for _, a := range u.apps.items {
			a.ratio = a.share()
		}
		u.apps.rebuild()
	}
	q.users.less = func(a, b *user) bool { return less(a.apps.top(), b.apps.top()) }
	q.users.rebuild()
}

func containsName(qs []queues.Queue, name string) bool {
	for i := range qs {
		if qs[i].Name == name {
			return true
		}
	}
	return false
}

// SetQueueState starts, stops or drains a queue. A stopped queue with
// applications drains until they have ended.
func (m *Machine) SetQueueState(now time.Time, path creel.QueuePath, s creel.QueueState) error {
	m.at(now)
	q := m.tree.find(string(path))
	if q == nil {
		return noQueue(string(path))
	}
	q.state = s
	if s == creel.QueueStopped && q.appsBelow() > 0 {
		q.state = creel.QueueDraining
	}
	m.settle()
	return nil
}

func noQueue(path string) error {
	return &creel.Error{Kind: creel.ErrQueueNotFound, What: "Unknown queue: " + path}
}

// Move takes an application, with all it has and asks for, to another leaf.
func (m *Machine) Move(now time.Time, id creel.ApplicationID, to string) error {
	m.at(now)
	a := m.apps[id]
	if a == nil {
		return noApp(id)
	}
	q := m.tree.find(to)
	if q != nil {
		q.sized()
	}
	switch {
	case q == nil:
		return noQueue(to)
	case q.leaf == nil:
		return invalid(
			"Application "+id.String()+" cannot be moved to "+string(q.path),
			"it is not a leaf queue",
			"name a leaf",
		)
	case !a.inQueue || a.state == appKilling || a.state == appFinalSaving || a.state == appFinishing:
		return invalid("App in "+a.state.public(a.before).String()+" state cannot be moved.", "", "")
	case q == a.queue:
		return nil
	case q.stateNow() != creel.QueueRunning:
		return invalid(
			fmt.Sprintf("Queue %s is %s. Cannot accept application %s", q.path, q.stateNow(), id),
			"",
			"start the queue",
		)
	case q.leaf.maxApps > 0 && q.leaf.apps >= q.leaf.maxApps:
		return invalid(
			fmt.Sprintf(
				"Queue %s already has %d applications, cannot accept submission of application: %s",
				q.path,
				q.leaf.apps,
				id,
			),
			"",
			"",
		)
	}
	for p := q; p.parent != nil; p = p.parent {
		if p.isAbove(a.queue) {
			break // what it uses is counted there already
		}
		if p.bounded && !m.within(p, &a.used, nil) {
			return invalid(
				fmt.Sprintf("Moving %s to queue %s would break the maximum of %s", id, q.path, p.path),
				fmt.Sprintf("it uses %s", m.t.resource(&a.used)),
				"",
			)
		}
	}
	m.move(a, q)
	m.saveApp(a, func() {})
	m.settle()
	return nil
}

func (q *queue) isAbove(x *queue) bool {
	for ; x != nil; x = x.parent {
		if x == q {
			return true
		}
	}
	return false
}

func (m *Machine) move(a *app, to *queue) {
	t := a.current
	for _, w := range t.wants {
		m.unblock(w)
		if w.hold != nil {
			m.unreserve(w.hold)
		}
	}
	wasActive := a.activated
	if a.waits {
		m.setWaits(a, false)
	}
	m.accrue(a)
	m.stopRunning(a)
	from := a.queue
	m.transfer(a, -1)
	m.leaveQueue(a)
	m.freed(from)
	m.touch(from)
	m.enterQueue(a, to)
	m.transfer(a, 1)
	m.touch(to)
	if wasActive {
		// It runs already: limits of the new queue on masters hold for the next.
		a.activated = true
		a.user.running++
		for q := to; q != nil; q = q.parent {
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
		}
		m.serve(a)
	} else if t.schedulable() || t.state == tLaunchedUnmanagedSaving {
		m.enqueue(a)
	}
}

// transfer adds or takes away all an application uses and asks for.
func (m *Machine) transfer(a *app, sign int64) {
	m.appChanged(a)
	a.user.used.addTimes(&a.used, sign)
	if a.user.waitingApps > 0 {
		a.queue.leaf.usedByActive.addTimes(&a.used, sign)
	}
	for q := a.queue; q != nil; q = q.parent {
		q.used.addTimes(&a.used, sign)
		q.pending.addTimes(&a.pending, sign)
		q.containers += int32(sign) * a.containers
		q.pendingCount += int32(sign) * a.pendingCount
		q.rerank()
	}
}
