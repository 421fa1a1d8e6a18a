// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// QueueView is a queue with its limits and use.
type QueueView struct {
	Path     creel.QueuePath
	Parent   creel.QueuePath // "" for the root
	Leaf     bool
	Children []creel.QueuePath // in configured order
	Dynamic  bool              // created on demand
	Makes    bool              // creates queues below it on demand
	State    creel.QueueState
	Spec     queues.Queue // as configured, without Children

	QueueShare
	QueueUse
	QueueApps
	QueueContainers
	MaxAllocation creel.Resource
	// No container is preempted from it for other queues, or between its users and applications; also true if
	// preemption is off.
	PreemptionDisabled, IntraPreemptionDisabled bool

	Labels       []string        // labels that asks in the queue may name
	DefaultLabel string          // label of asks that name none
	Partitions   []PartitionView // of existing labels, by label; without the default one
	Absent       []PartitionView // of labels that queues list and the cluster lacks, by label
}

// QueueShare is the part of the cluster that a queue has and may have.
type QueueShare struct {
	Guaranteed, Max  creel.Resource // of the present cluster
	Planned          *PlannedView   // a plan's capacity that replaces Guaranteed
	Minimum          creel.Resource // FairScheduler: minResources
	FairShare        creel.Resource // FairScheduler: instantaneous
	SteadyShare      creel.Resource // FairScheduler: if every queue were active
	Capacity         float64        // 0..1 of the parent
	MaxCapacity      float64        // 0..1 of the parent
	AbsCapacity      float64        // 0..1 of the cluster
	AbsMaxCapacity   float64
	NormalizedWeight float64
	Vectors          bool // capacities are configured per type (Spec.Vectors)
	MemoryOnly       bool // the calculator compares only memory
}

// QueueUse is the use and demand of a queue.
type QueueUse struct {
	Used, Reserved     creel.Resource
	Pending            creel.Resource
	Demand             creel.Resource // used and pending
	UsedCapacity       float64        // used over guaranteed
	AbsUsed            float64        // used over the cluster
	Containers         int32
	ReservedContainers int32
	PendingContainers  int32
	AllContainers      int32 // of all partitions
	// InLine is the sum of the AMs of applications that wait to start. Pending, the sum of outstanding asks, does not
	// include it.
	InLine           creel.Resource
	InLineContainers int32
}

// QueueApps are the applications and users of a queue, and the limits on them.
type QueueApps struct {
	Apps, PendingApps, ActiveApps int32
	MaxApps, MaxAppsPerUser       int
	AMLimit, UserAMLimit, AMUsed  creel.Resource
	MinUserPercent                float64
	UserFactor                    float64
	MaxAMPercent                  float64
	Users                         []UserView // of a leaf, by name
}

// QueueContainers counts the containers of a queue since the start. Containers from before are in no count.
type QueueContainers struct {
	ContainersAllocated, ContainersReleased int64
	// Of the allocated ones, by the place that the ask named. An ask without places is off-switch.
	NodeLocal, RackLocal, OffSwitch int64
	ContainersPreempted             int64
	Preempted                       creel.Resource // the resources of these
	PreemptedSeconds                creel.Resource // times the seconds of their runs
}

// PartitionView is a queue's limits and use on the nodes of a label.
type PartitionView struct {
	Label      string
	Accessible bool // asks in the queue may name it
	QueueView
}

// PartitionUse is an application's use and asks on the nodes of a label.
type PartitionUse struct {
	Label                           string
	Used, Reserved, Pending, AMUsed creel.Resource
}

// UseByPartition returns one entry for each label that the application has asked for or used, first the default
// partition; nil if it never named one.
func (e Explainer) UseByPartition(a *App) []PartitionUse {
	p := e.part
	if len(a.parts) == 0 {
		return nil
	}
	out := make([]PartitionUse, 0, 1+len(a.parts))
	for _, x := range append([]*App{a}, a.parts...) {
		out = append(out, PartitionUse{
			Label: x.label(), Used: p.sizes.Resource(&x.used), Reserved: p.sizes.Resource(&x.held),
			Pending: p.sizes.Resource(&x.pending), AMUsed: p.sizes.Resource(&x.amUsed),
		})
	}
	return out
}

// UserView is a user within a leaf queue.
type UserView struct {
	Name             string
	Used             creel.Resource // of all partitions
	Here             creel.Resource // of this partition
	AMUsed           creel.Resource
	Limit            creel.Resource
	AMLimit          creel.Resource
	Active           bool  // wants a container, or has another application in line
	Pending, Running int32 // applications
	Weight           float64

	PendingUAMs, RunningUAMs int32 // included, as set by the owner
}

// usedCapacity is use over guarantee, or over a smallest container if that is larger, by the calculator's measure.
func (e Explainer) usedCapacity(q *Queue) float64 {
	p := e.part
	have := max(p.sizes.Dominant(&q.capacity.guaranteed, &p.total), p.sizes.Dominant(&p.sizes.Least, &p.total))
	return finite(p.sizes.Dominant(&q.used, &p.total) / have)
}

// View returns the current view of a queue.
func (e Explainer) View(q *Queue) QueueView {
	p := e.part
	p.tree.refreshShares(inViews)
	q.sized()
	v := QueueView{
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
func (e Explainer) share(q *Queue) QueueShare {
	p := e.part
	s := QueueShare{
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
func (e Explainer) use(q *Queue) QueueUse {
	p, demand := e.part, q.used
	demand.Add(&q.pending)
	return QueueUse{
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
func containersOf(q *Queue) QueueContainers {
	n := q.counts()
	return QueueContainers{
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
func (e Explainer) leaf(q *Queue, v *QueueView) {
	p, l := e.part, q.leaf
	all, one := q.amLimit(nil, inViews)
	v.MaxApps, v.MaxAppsPerUser = l.maxApps, l.maxUserApps
	v.AMLimit, v.UserAMLimit, v.AMUsed = e.inCluster(all), e.inCluster(one), p.sizes.Resource(&l.amUsed)
	v.PendingApps = int32(l.pendingApps)
	for _, u := range l.userList {
		v.Users = append(v.Users, e.user(u))
	}
	slices.SortFunc(v.Users, func(a, b UserView) int { return cmp.Compare(a.Name, b.Name) })
}

func (e Explainer) user(u *user) UserView {
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
	return UserView{
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
func (e Explainer) partitions(q *Queue, v *QueueView) {
	at := e.part
	viewOf := func(p *partition, part *Queue) PartitionView {
		return PartitionView{
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
func (e Explainer) preempted(q *Queue, v *QueueView) {
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

// Shares returns an application's use in percent of its queue's guarantee, and of the cluster.
func (e Explainer) Shares(a *App) (ofQueue, ofCluster float64) {
	p := e.part
	used := p.policy.measure(p, &a.used)
	if promise := p.policy.promise(p, a.queue); promise > 0 {
		ofQueue = finite(100 * used / promise)
	}
	return ofQueue, finite(100 * used)
}

// Totals has the amounts and numbers of the whole cluster.
type Totals struct {
	Total, Used, Reserved, Available, Pending amounts.Vec
	InLine                                    amounts.Vec // sum of the AMs in line
	InLineContainers                          int32
	PendingContainers                         int32
	ReservedNodes                             int // each for one container
	Waiting                                   int // applications in line to be activated
	Activated                                 int // activated applications

	AllTotal, AllUsed, AllReserved amounts.Vec // of all partitions
}

// Totals returns the totals of the scheduler.
func (e Explainer) Totals() Totals {
	part := e.part
	root := part.tree.root
	left := part.total
	left.Sub(&root.used)
	left.Sub(&root.reserved.sum)
	for i := 0; i < part.sizes.N; i++ {
		left.Set(i, max(left.At(i), 0))
	}
	t := Totals{
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
