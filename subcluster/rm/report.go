// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// App gives an application; false if there is none.
func (m *Machine) App(id creel.ApplicationID) (AppView, bool) {
	a := m.apps[id]
	if a == nil {
		return AppView{}, false
	}
	return *m.appView(a), true
}

// Apps calls yield for each application in order of submission, until it says
// no. Nobody may change a view; it may be kept.
func (m *Machine) Apps(yield func(*AppView) bool) {
	for _, a := range m.appList {
		if m.apps[a.id] == a && !yield(m.appView(a)) {
			return
		}
	}
}

// appView gives the same view of an application that is over each time: a
// ResourceManager remembers thousands of those, and lists go through all.
func (m *Machine) appView(a *app) *AppView {
	if a.last != nil {
		return a.last
	}
	v := m.newAppView(a)
	if v.Over {
		a.last = v
	}
	return v
}

func (m *Machine) newAppView(a *app) *AppView {
	s := a.sub
	v := &AppView{
		ID:       a.id,
		User:     s.User,
		Name:     s.Name,
		Type:     s.Type,
		Tags:     s.Tags,
		Queue:    a.path,
		Priority: a.priority,
		State: a.state.public(
			a.before,
		),
		Internal:    a.state.String(),
		Final:       creel.FinalUndefined,
		Diagnostics: a.diag,
		Progress:    a.progress,
		Unmanaged:   s.Unmanaged,
		Submitted: instant(
			a.submitted,
		),
		Launched:   instant(a.launched),
		Deadline:   instant(a.deadline),
		Label:      s.Label,
		Placed:     a.rule,
		Port:       -1,
		Context:    s.Context,
		Containers: a.containers,
		Reserved:   a.heldContainers,
		Used: m.t.resource(
			&a.used,
		),
		ReservedRes:  m.t.resource(&a.held),
		Pending:      m.t.resource(&a.pending),
		PendingCount: a.pendingCount,
		AMUsed:       m.t.resource(&a.amUsed),
	}
	v.Over = a.state.ended() && !a.inQueue && a.containers == 0
	v.KillDone = a.state == appKilled
	if a.state.ended() || a.state == appFinishing {
		v.Finished, v.Final = instant(a.finished), a.final
	}
	if t := a.current; t != nil {
		v.Attempt, v.Host, v.TrackingURL = t.id, t.host, t.url
		if t.registered {
			v.Port = t.port
		}
		v.Token = s.Unmanaged && t.state == tLaunched
		v.InScheduler = a.inQueue && (t.schedulable() || t.state == tFinishing)
		v.Partitioned = v.InScheduler && m.tree.spec.Scheduler == queues.CapacityScheduler
	}
	if a.inQueue {
		d := m.t.dominant(&a.queue.sized().guaranteed, &m.total)
		if m.tree.spec.Scheduler == queues.FairScheduler { // its queues' capacity is their fair share of the memory
			m.refreshShares(inViews)
			d = float64(a.queue.shares[inViews].share.mem) / float64(max(m.total.mem, 1))
		}
		if d > 0 {
			v.QueueShare = finite(100 * m.t.dominant(&a.used, &m.total) / d)
		}
		v.ClusterShare = finite(100 * m.t.dominant(&a.used, &m.total))
	}
	seconds := a.seconds
	if dt := m.ms() - a.accrued; dt > 0 && a.containers > 0 {
		seconds.addTimes(&a.used, dt)
	}
	amounts := make([]TypeAmount, 2*m.t.n)
	v.ResourceSeconds, v.PreemptedSeconds = amounts[:m.t.n:m.t.n], amounts[m.t.n:]
	for i := range v.ResourceSeconds {
		v.ResourceSeconds[i] = TypeAmount{m.t.names[i], seconds.at(i) / 1000}
		v.PreemptedSeconds[i] = TypeAmount{m.t.names[i], 0}
	}
	return v
}

// Attempt gives an attempt; false if there is none.
func (m *Machine) Attempt(id creel.AttemptID) (AttemptView, bool) {
	t := m.attempt(id)
	if t == nil {
		return AttemptView{}, false
	}
	return t.view(), true
}

// Attempts gives all attempts of an application, oldest first.
func (m *Machine) Attempts(id creel.ApplicationID) []AttemptView {
	a := m.apps[id]
	if a == nil {
		return nil
	}
	var out []AttemptView
	for _, t := range a.attempts {
		out = append(out, t.view())
	}
	return out
}

func (t *attempt) view() AttemptView {
	v := AttemptView{
		ID:          t.id,
		State:       t.state.public(t.before),
		Internal:    t.state.String(),
		Host:        t.host,
		Port:        -1,
		TrackingURL: t.url,
		Diagnostics: t.diag,
		Master:      t.master,
		MasterNode:  t.masterNode,
		MasterHTTP:  t.masterHTTP,
		Started:     instant(t.started),
		ExitStatus:  t.exit,
		Blacklist:   keys(t),
	}
	if t.registered {
		v.Port = t.port
	}
	if t.over() || t.state == tFinishing {
		v.Finished, v.Final = instant(t.finished), t.final
	}
	return v
}

// Container gives a live container; false if there is none.
func (m *Machine) Container(id creel.ContainerID) (ContainerView, bool) {
	c := m.container(id)
	if c == nil {
		return ContainerView{}, false
	}
	return m.containerView(c), true
}

// Containers gives the live containers an attempt owns, by id.
func (m *Machine) Containers(id creel.AttemptID) []ContainerView {
	t := m.attempt(id)
	if t == nil {
		return nil
	}
	var out []ContainerView
	for c := range t.containers() {
		out = append(out, m.containerView(c))
	}
	slices.SortFunc(out, func(a, b ContainerView) int { return a.ID.Compare(b.ID) })
	return out
}

// NodeContainers gives the live containers of a node, by id.
func (m *Machine) NodeContainers(id creel.NodeID) []ContainerView {
	n := m.nodes[id]
	if n == nil {
		return nil
	}
	var out []ContainerView
	for _, c := range n.live {
		if c != nil {
			out = append(out, m.containerView(c))
		}
	}
	slices.SortFunc(out, func(a, b ContainerView) int { return a.ID.Compare(b.ID) })
	return out
}

func (m *Machine) containerView(c *container) ContainerView {
	return ContainerView{
		ID:                  c.id(),
		State:               c.state.public(),
		Internal:            c.state.String(),
		Node:                c.node.id,
		HTTPAddress:         c.node.at.HTTPAddress,
		Resource:            m.sizeOf(c).Resource,
		Priority:            c.priority,
		AllocationRequestID: c.rare().alloc,
		ExecutionType:       creel.ExecutionType(c.execution),
		Version:             c.rare().version,
		Created:             instant(c.created * 1e6),
		Master:              c.master,
		Reason:              c.reason,
		Tags:                c.rare().tags,
	}
}

// Asks gives what an application asks for and has not got, in order.
func (m *Machine) Asks(id creel.ApplicationID) []AskView {
	a := m.apps[id]
	if a == nil || a.current == nil {
		return nil
	}
	var out []AskView
	for _, w := range a.current.wants {
		out = append(out, w.view(m))
		for _, list := range [][]*place{w.racks, w.hosts} {
			for _, p := range list {
				v := w.view(m)
				v.ResourceName, v.Count, v.Relax = p.name, p.count, !p.strict
				out = append(out, v)
			}
		}
	}
	return out
}

func (w *want) view(m *Machine) AskView {
	v := AskView{
		Priority:            w.priority,
		AllocationRequestID: w.alloc,
		ExecutionType:       w.execution,
		ResourceName:        anyPlace,
		Count:               w.count,
		Relax:               !w.strict,
	}
	if w.size != nil {
		v.Resource = w.size.Resource
	}
	return v
}

// SchedulingAsks gives the scheduling requests kept for an attempt.
func (m *Machine) SchedulingAsks(id creel.AttemptID) []SchedulingAsk {
	if t := m.attempt(id); t != nil {
		return slices.Clone(t.scheduling)
	}
	return nil
}

// Node gives a node; false if it never registered.
func (m *Machine) Node(id creel.NodeID) (NodeView, bool) {
	n := m.nodes[id]
	if n == nil {
		return NodeView{}, false
	}
	return m.nodeView(n), true
}

// Nodes calls yield for each node in order of first registration, until it says no.
func (m *Machine) Nodes(yield func(NodeView) bool) {
	for _, n := range m.nodeList {
		if !yield(m.nodeView(n)) {
			return
		}
	}
}

func (m *Machine) nodeView(n *node) NodeView {
	used := n.used()
	v := NodeView{
		ID:           n.id,
		HTTPAddress:  n.at.HTTPAddress,
		Rack:         n.rack.name,
		State:        creel.NodeState(n.state),
		Version:      n.version,
		HealthReport: n.health,
		HealthTime:   n.healthTime,
		LastBeat: instant(
			n.beat,
		),
		Total:          m.t.resource(&n.total),
		Used:           m.t.resource(&used),
		Physical:       n.physical,
		Containers:     n.count,
		Utilization:    n.use,
		DecommissionBy: instant(n.leaveBy),
	}
	if n.hold != nil {
		v.Reserved = creel.ContainerID{Attempt: n.hold.want.attempt.id}
	}
	return v
}

// Queue gives a queue by path or leaf name; false if there is none.
func (m *Machine) Queue(name string) (QueueView, bool) {
	q := m.tree.find(name)
	if q == nil {
		return QueueView{}, false
	}
	return m.queueView(q, m.begun()), true
}

// Queues calls yield for each queue, parents first, until it says no.
func (m *Machine) Queues(yield func(QueueView) bool) {
	begun := m.begun()
	for _, q := range m.tree.all {
		if !yield(m.queueView(q, begun)) {
			return
		}
	}
}

// Spec gives the queue specification in force. It must not be changed.
func (m *Machine) Spec() *queues.Spec { return m.tree.spec }

// Config gives the configuration in force. It must not be changed.
func (m *Machine) Config() *Config { return &m.cfg }

// begun counts, for FairScheduler's views, the applications of each queue that
// have had a container: it calls the others pending.
func (m *Machine) begun() map[*queue]int32 {
	if m.tree.spec.Scheduler != queues.FairScheduler {
		return nil
	}
	n := map[*queue]int32{}
	for _, a := range m.appList {
		if a.inQueue && (a.containers > 0 || !a.seconds.isZero()) {
			n[a.queue]++
		}
	}
	return n
}

func (m *Machine) queueView(q *queue, begun map[*queue]int32) QueueView {
	m.refreshShares(inViews)
	q.sized()
	r := func(v *vec) creel.Resource {
		x := *v
		x.min(&m.total)
		return m.t.resource(&x)
	}
	demand := q.used
	demand.add(&q.pending)
	v := QueueView{
		Path:    q.path,
		Leaf:    q.leaf != nil,
		Dynamic: q.dynamic,
		State:   q.state,
		Spec:    *q.spec,
		Guaranteed: m.t.resource(
			&q.guaranteed,
		),
		Max:      r(&q.max),
		Used:     m.t.resource(&q.used),
		Reserved: m.t.resource(&q.held),
		Pending: m.t.resource(
			&q.pending,
		),
		Demand:         m.t.resource(&demand),
		FairShare:      m.t.resource(&q.shares[inViews].share),
		SteadyShare:    m.t.resource(&q.shares[inViews].steady),
		Capacity:       q.capFrac,
		MaxCapacity:    q.maxFrac,
		AbsCapacity:    q.absCap,
		AbsMaxCapacity: q.absMax,
		AbsUsed: finite(
			m.t.dominant(&q.used, &m.total),
		),
		Containers:         q.containers,
		ReservedContainers: q.heldContainers,
		PendingContainers:  q.pendingCount,
		MaxAllocation: m.t.resource(
			&q.largest,
		),
		MinUserPercent:      q.minUserPercent(),
		UserFactor:          q.factor(),
		MaxAMPercent:        q.maxAM,
		AppsSubmitted:       q.submitted,
		AppsCompleted:       q.completed,
		AppsFailed:          q.failed,
		AppsKilled:          q.killed,
		ActiveApps:          int32(q.running),
		ContainersAllocated: q.granted,
		ContainersReleased:  q.released,
	}
	v.Spec.Children = nil
	if m.tree.spec.Scheduler == queues.FairScheduler {
		v.Guaranteed, v.Minimum = v.FairShare, m.t.resource(&q.minimum)
	}
	if q.parent != nil {
		v.Parent = q.parent.path
	}
	if q.spec.Capacity.Unit == queues.Weight {
		v.NormalizedWeight = q.capFrac
	}
	for _, c := range q.children {
		v.Children = append(v.Children, c.path)
		if c.leaf == nil {
			continue
		}
	}
	v.UsedCapacity = finite(useRank(q).ratio)
	v.Apps = int32(q.appsBelow())
	v.PendingApps = v.Apps - v.ActiveApps
	if l := q.leaf; l != nil {
		all, one := m.masterLimit(q, inViews)
		v.MaxApps, v.MaxAppsPerUser, v.AMLimit, v.UserAMLimit, v.AMUsed = l.maxApps, l.maxUserApps, r(
			&all,
		), r(
			&one,
		), m.t.resource(
			&l.amUsed,
		)
		v.PendingApps = int32(l.pendingApps)
		for _, u := range l.userList {
			limit := m.userLimit(u)
			if m.tree.spec.Scheduler == queues.FairScheduler {
				limit = vec{} // FairScheduler has no user limits on resources
			}
			v.Users = append(
				v.Users,
				UserView{
					Name:    u.name,
					Used:    m.t.resource(&u.used),
					AMUsed:  m.t.resource(&u.amUsed),
					Limit:   m.t.resource(&limit),
					Active:  u.waitingApps > 0,
					Pending: int32(u.pending.len()),
					Running: int32(u.running),
					Weight:  u.weight,
				},
			)
		}
		slices.SortFunc(v.Users, func(a, b UserView) int { return cmp.Compare(a.Name, b.Name) })
		if begun != nil {
			v.ActiveApps, v.PendingApps = begun[q], int32(l.apps)-begun[q]
		}
	}
	return v
}

// Cluster gives the whole in numbers.
func (m *Machine) Cluster() ClusterView {
	root := m.tree.root
	left := m.total
	left.sub(&root.used)
	left.sub(&root.held)
	for i := 0; i < m.t.n; i++ {
		left.set(i, max(left.at(i), 0))
	}
	v := ClusterView{
		AppsSubmitted: m.count.submitted,
		AppsCompleted: m.count.completed,
		AppsFailed:    m.count.failed,
		AppsKilled:    m.count.killed,
		Total: m.t.resource(
			&m.total,
		),
		Used:               m.t.resource(&root.used),
		Reserved:           m.t.resource(&root.held),
		Available:          m.t.resource(&left),
		Pending:            m.t.resource(&root.pending),
		Containers:         m.count.containers,
		ReservedContainers: m.count.reservedContainers,
		PendingContainers:  root.pendingCount,
		Nodes:              map[creel.NodeState]int{},
		Granted:            m.count.granted,
		Released:           m.count.released,
	}
	for _, n := range m.nodeList {
		v.Nodes[creel.NodeState(n.state)]++
	}
	v.AppsRunning = int64(root.running)
	for _, q := range m.tree.all {
		if q.leaf != nil {
			v.AppsPending += int64(q.leaf.pendingApps)
		}
	}
	return v
}
