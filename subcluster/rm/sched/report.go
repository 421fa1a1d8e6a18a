// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// usedCapacity is use over guarantee, or over a smallest container if that is larger, by the calculator's measure.
func (e Explainer) usedCapacity(q *Queue) float64 {
	p := e.part
	have := max(p.sizes.Dominant(&q.capacity.guaranteed, &p.total), p.sizes.Dominant(&p.sizes.Least, &p.total))
	return finite(p.sizes.Dominant(&q.used, &p.total) / have)
}

// View returns the current view of a queue.
func (e Explainer) View(q *Queue) explain.QueueView {
	p := e.part
	p.tree.refreshShares(inViews)
	q.sized()
	v := explain.QueueView{
		Path:            q.path,
		Leaf:            q.leaf != nil,
		Dynamic:         q.lifetime.dynamic,
		Makes:           p.policy.template(q.spec, 1) != nil,
		State:           q.lifetime.state,
		Spec:            *q.spec,
		QueueShare:      e.share(q),
		QueueUse:        e.use(q),
		QueueContainers: containersOf(q),
		MaxAllocation:   p.sizes.Resource(&q.settings.largest),
	}
	v.MinUserPercent, v.UserFactor = written(q.spec.UserPercent()), written(q.spec.Factor())
	v.MaxAMPercent = written(q.settings.maxAM)
	v.Apps, v.ActiveApps = int32(q.appsBelow()), int32(q.apps.running)
	e.preempted(q, &v)
	v.PendingApps = v.Apps - v.ActiveApps
	v.Spec.Children = nil
	if q.parent != nil {
		v.Parent = q.parent.path
	}
	for _, c := range q.children {
		v.Children = append(v.Children, c.path)
	}
	if q.leaf != nil {
		e.leaf(q, &v)
	}
	p.policy.report(p, q, &v)
	v.Labels = []string{queues.AnyLabel}
	if p.label == "" && p.policy.knowsLabels {
		v.Labels, v.DefaultLabel = q.Labels(), q.DefaultLabel()
	}
	e.partitions(q, &v)
	return v
}

// share returns the queue's part of the cluster.
func (e Explainer) share(q *Queue) explain.QueueShare {
	p := e.part
	s := explain.QueueShare{
		Guaranteed:     p.sizes.Resource(&q.capacity.guaranteed),
		Planned:        q.Planned(),
		Max:            e.inCluster(q.bounds.max),
		FairShare:      p.sizes.Resource(&q.shares[inViews].share),
		SteadyShare:    p.sizes.Resource(&q.shares[inViews].steady),
		Capacity:       q.capacity.fraction,
		MaxCapacity:    q.bounds.fraction,
		AbsCapacity:    q.capacity.absolute,
		AbsMaxCapacity: q.bounds.absolute,
		Vectors:        p.tree.spec.Vectors,
		MemoryOnly:     p.sizes.Check == 1,
	}
	if q.spec.Capacity.Unit == queues.Weight && !p.tree.spec.Vectors {
		s.NormalizedWeight = q.capacity.fraction
	}
	return s
}

// use returns the queue's use and demand.
func (e Explainer) use(q *Queue) explain.QueueUse {
	p, demand := e.part, q.used
	demand.Add(&q.pending)
	return explain.QueueUse{
		Used:               p.sizes.Resource(&q.used),
		Reserved:           p.sizes.Resource(&q.reserved.sum),
		Pending:            p.sizes.Resource(&q.pending),
		Demand:             p.sizes.Resource(&demand),
		UsedCapacity:       e.usedCapacity(q),
		AbsUsed:            finite(p.sizes.Dominant(&q.used, &p.total)),
		Containers:         q.containers,
		ReservedContainers: q.reserved.containers,
		PendingContainers:  clampInt32(q.pendingCount),
		AllContainers:      q.containers, // partitions adds the others'
		InLine:             p.sizes.Resource(&q.apps.inLine),
		InLineContainers:   q.apps.lined,
	}
}

// containersOf returns the counts of the queue's containers, without preempted ones.
func containersOf(q *Queue) explain.QueueContainers {
	n := q.counts()
	return explain.QueueContainers{
		ContainersAllocated: n.granted,
		ContainersReleased:  n.released,
		NodeLocal:           n.near[places.AtNode],
		RackLocal:           n.near[places.AtRack],
		OffSwitch:           n.near[places.AtAny],
	}
}

// inCluster returns a limit, reduced to the cluster's size.
func (e Explainer) inCluster(v amounts.Vec) creel.Resource {
	v.Min(&e.part.total)
	return e.part.sizes.Resource(&v)
}

// leaf adds the limits and users of a leaf.
func (e Explainer) leaf(q *Queue, v *explain.QueueView) {
	p, l := e.part, q.leaf
	all, one := q.amLimit(nil, inViews)
	v.MaxApps, v.MaxAppsPerUser = l.maxApps, l.maxUserApps
	v.AMLimit, v.UserAMLimit, v.AMUsed = e.inCluster(all), e.inCluster(one), p.sizes.Resource(&l.amUsed)
	v.PendingApps = int32(l.pendingApps)
	for _, u := range l.userList {
		v.Users = append(v.Users, e.user(u))
	}
	slices.SortFunc(v.Users, func(a, b explain.UserView) int { return cmp.Compare(a.Name, b.Name) })
}

func (e Explainer) user(u *user) explain.UserView {
	part, q := e.part, u.q
	limit, _ := part.policy.userLimit(part, u)
	used, wants := u.used, u.waitingApps > 0
	for _, p := range part.others() { // of all partitions
		if c := p.tree.at(q.path); c != nil && c.leaf.byName[u.name] != nil {
			there := c.leaf.byName[u.name]
			used.Add(&there.used)
			wants = wants || there.waitingApps > 0
		}
	}
	_, ofAMs := q.amLimit(u, inViews)
	return explain.UserView{
		Name:    u.name,
		Used:    part.sizes.Resource(&used),
		Here:    part.sizes.Resource(&u.used),
		AMUsed:  part.sizes.Resource(&u.amUsed),
		Limit:   part.sizes.Resource(&limit),
		AMLimit: e.inCluster(ofAMs),
		Active:  wants || u.running > 0 && u.pending.Len() > 0,
		Pending: int32(u.pending.Len()),
		Running: int32(u.running),
		Weight:  u.weight,
	}
}

// partitions adds the parts of a queue on the nodes of labels.
func (e Explainer) partitions(q *Queue, v *explain.QueueView) {
	at := e.part
	viewOf := func(p *partition, part *Queue) explain.PartitionView {
		return explain.PartitionView{
			Label: p.label, Accessible: queues.Accesses(v.Labels, p.label), QueueView: p.explain().View(part),
		}
	}
	for _, p := range at.others() {
		if c := p.tree.at(q.path); c != nil {
			v.Partitions = append(v.Partitions, viewOf(p, c))
			v.AllContainers += c.containers
		}
	}
	for _, p := range at.absent() {
		if q.parent == nil && !slices.Contains(at.tree.spec.LabelNames(), p.label) {
			continue // no queue has a share of it
		}
		v.Absent = append(v.Absent, viewOf(p, p.counterpart(q)))
	}
}

// preempted adds whether preemption applies to a queue, and the amounts that the queue lost to it.
func (e Explainer) preempted(q *Queue, v *explain.QueueView) {
	part, p := e.part, &e.part.preempt
	v.PreemptionDisabled = !p.on || q.spec.PreemptionDisabled
	v.IntraPreemptionDisabled = !p.on || !p.cfg.IntraQueue || q.keepsWithin()
	seconds := q.Lost.OverTime
	for i := 0; i < part.sizes.N; i++ {
		seconds.Set(i, seconds.At(i)/1000)
	}
	v.PreemptedSeconds = part.sizes.Resource(&seconds)
	v.ContainersPreempted = q.Lost.Containers
	v.Preempted = part.sizes.Resource(&q.Lost.Amount)
}

// Totals returns the totals of the scheduler.
func (e Explainer) Totals() explain.Totals {
	part := e.part
	root := part.tree.root
	left := part.total
	left.Sub(&root.used)
	left.Sub(&root.reserved.sum)
	for i := 0; i < part.sizes.N; i++ {
		left.Set(i, max(left.At(i), 0))
	}
	t := explain.Totals{
		Total:             part.total,
		Used:              root.used,
		Reserved:          root.reserved.sum,
		Available:         left,
		Pending:           root.pending,
		InLine:            root.apps.inLine,
		InLineContainers:  root.apps.lined,
		PendingContainers: clampInt32(root.pendingCount),
		ReservedNodes:     part.reservations.count,
		Activated:         root.apps.running,
	}
	for _, q := range part.tree.all {
		if q.leaf != nil {
			t.Waiting += q.leaf.pendingApps
		}
	}
	t.AllTotal, t.AllUsed, t.AllReserved = t.Total, t.Used, t.Reserved
	for _, p := range part.others() {
		t.AllTotal.Add(&p.total)
		t.AllUsed.Add(&p.tree.root.used)
		t.AllReserved.Add(&p.tree.root.reserved.sum)
	}
	return t
}
