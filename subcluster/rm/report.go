// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Reader answers questions about a machine: it has no call that changes one. Code that only reads takes a Reader, and
// has a Machine's as Machine.Reader.
type Reader struct{ m *Machine }

// App returns an application; ok is false if there is none.
func (r Reader) App(id creel.ApplicationID) (AppView, bool) {
	a := r.m.apps.byID[id]
	if a == nil {
		return AppView{}, false
	}
	v := *r.appView(a)
	if v.State == creel.AppAccepted && v.Waits == "" {
		if w, _ := r.Why(id); w.Limit != explain.LimitUnregistered && w.Limit != explain.LimitNone {
			v.Waits = w.Sentence()
		}
	}
	return v, true
}

// Apps calls yield for each application in order of submission, until it returns false. A view is read-only and may
// be retained.
func (r Reader) Apps(yield func(*AppView) bool) {
	m := r.m
	for _, a := range m.apps.list {
		if m.apps.byID[a.id] == a && !yield(r.appView(a)) {
			return
		}
	}
}

// EachListed calls take with the candidates of a list, until take has returned true most times. With parts, it also
// passes UAMs that join, with part set; they do not count, because a router joins them with their applications.
func (r Reader) EachListed(most int, parts bool, take func(a *AppView, part bool) bool) {
	listed := 0
	for a := range r.Apps {
		uam := parts && a.UAM()
		part := uam && a.Joins()
		switch {
		case part || listed < most:
			if take(a, part) && !uam {
				listed++
			}
		case !parts:
			return
		}
	}
}

// appView returns the same view of an ended application each time, because a ResourceManager remembers thousands of
// those, and lists iterate over all.
func (r Reader) appView(a *app) *AppView {
	if a.last != nil {
		return a.last
	}
	v := r.newAppView(a)
	if v.Over {
		a.last = v
	}
	return v
}

func (r Reader) newAppView(a *app) *AppView {
	m := r.m
	s := a.sub
	used, containers := a.Used()
	opportune := a.opportunisticUse(m.ms())
	containers += opportune.containers
	reserved, reservedOn := a.Reserved()
	pending, pendingCount := a.Pending()
	amUsed := a.AMUsed()
	v := &AppView{
		ID:           a.id,
		User:         s.User,
		Name:         s.Name,
		Type:         s.Type,
		Tags:         s.Tags,
		Queue:        a.path,
		Priority:     a.Priority(),
		State:        a.state.public(a.before),
		Internal:     a.state.String(),
		Final:        creel.FinalUndefined,
		Diagnostics:  a.diag,
		Progress:     a.progress,
		Unmanaged:    s.Unmanaged,
		Submitted:    instant(a.submitted),
		Launched:     instant(a.launched),
		Deadline:     instant(a.deadline),
		Label:        s.Label.Text,
		LabelGiven:   s.Label.Given,
		AMLabel:      a.amLabel,
		Placed:       a.rule,
		Port:         -1,
		Context:      s.Context,
		Containers:   containers,
		Reserved:     reservedOn,
		Used:         m.sizes.Resource(&used),
		ReservedRes:  m.sizes.Resource(&reserved),
		Pending:      m.sizes.Resource(&pending),
		PendingCount: pendingCount,
		AMUsed:       m.sizes.Resource(&amUsed),
		Logs:         m.logs.status(a),
		LogsLeft:     a.logs != nil && a.logs.Left(),
	}
	if v.State == creel.AppAccepted && a.InQueue() && !a.Activated() {
		v.Waits = m.sched.Explain().Why(&a.App).Sentence()
		if am := a.AMSize(); am != nil {
			v.InLine = am.Resource
		}
	}
	v.Held = m.disowned.withNewest(a)
	if a.hold.Claim > 0 {
		v.Waits = a.holdText()
	}
	v.Ending = a.state.ending()
	v.Over = a.state.ended() && !a.InQueue() && containers == 0
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
		v.InScheduler = a.InQueue() && (t.schedulable() || t.state == tFinishing)
		if v.InScheduler {
			v.Partitions = m.sched.Explain().UseByPartition(&a.App)
		}
		v.Partitioned = v.InScheduler && m.sched.Policy().ByPartition()
	}
	if a.InQueue() {
		v.QueueShare, v.ClusterShare = m.sched.Explain().Shares(&a.App)
	}
	seconds := m.sched.UsedOverTime(&a.App)
	seconds.Add(&opportune.overTime)
	n := m.sizes.N
	list := make([]TypeAmount, 2*n)
	v.ResourceSeconds, v.PreemptedSeconds = list[:n:n], list[n:]
	for i := range v.ResourceSeconds {
		v.ResourceSeconds[i] = TypeAmount{m.sizes.Names[i], seconds.At(i) / 1000}
		v.PreemptedSeconds[i] = TypeAmount{m.sizes.Names[i], a.lost.overTime.At(i) / 1000}
	}
	v.Preempted = m.sizes.Resource(&a.lost.amount)
	v.PreemptedContainers, v.PreemptedAMs = a.lost.containers, a.lost.ams
	return v
}

// Attempt returns an attempt; false if there is none.
func (r Reader) Attempt(id creel.AttemptID) (AttemptView, bool) {
	t := r.m.apps.attempt(id)
	if t == nil {
		return AttemptView{}, false
	}
	return t.view(), true
}

// Attempts returns all attempts of an application, oldest first.
func (r Reader) Attempts(id creel.ApplicationID) []AttemptView {
	a := r.m.apps.byID[id]
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
		Remote:      t.remote,
		Diagnostics: t.diag.String(),
		AM:          t.am,
		AMNode:      t.amNode,
		AMHTTP:      t.amHTTP,
		Started:     instant(t.started),
		ExitStatus:  t.exit,
		Blacklist:   t.avoids(),
	}
	if t.registered {
		v.Port = t.port
	}
	if t.over() || t.state == tFinishing {
		v.Finished, v.Final = instant(t.finished), t.final
	}
	return v
}

// avoids returns the hosts and racks it avoids, sorted.
func (t *attempt) avoids() []string {
	if t.app.current == t {
		return t.app.Avoided()
	}
	return t.avoided
}

// Container returns a live container; false if there is none.
func (r Reader) Container(id creel.ContainerID) (ContainerView, bool) {
	c := r.m.apps.container(id)
	if c == nil {
		return ContainerView{}, false
	}
	return r.containerView(c), true
}

// Containers returns the live containers an attempt owns, by id.
func (r Reader) Containers(id creel.AttemptID) []ContainerView {
	t := r.m.apps.attempt(id)
	if t == nil {
		return nil
	}
	var out []ContainerView
	for c := range t.containers() {
		out = append(out, r.containerView(c))
	}
	slices.SortFunc(out, func(a, b ContainerView) int { return a.ID.Compare(b.ID) })
	return out
}

// NodeContainers returns the live containers of a node, by id.
func (r Reader) NodeContainers(id creel.NodeID) []ContainerView {
	n := r.m.nodes.byID[id]
	if n == nil {
		return nil
	}
	var out []ContainerView
	for _, c := range n.live {
		if c != nil {
			out = append(out, r.containerView(c))
		}
	}
	slices.SortFunc(out, func(a, b ContainerView) int { return a.ID.Compare(b.ID) })
	return out
}

func (r Reader) containerView(c *container) ContainerView {
	return ContainerView{
		ID:                  c.id(),
		State:               c.state.public(),
		Internal:            c.state.String(),
		Node:                c.node.ID(),
		HTTPAddress:         c.node.at.HTTPAddress,
		Resource:            r.m.sizeOf(c).Resource,
		Priority:            c.priority,
		AllocationRequestID: c.rare().alloc,
		ExecutionType:       c.executionType(),
		Version:             c.rare().version,
		Created:             instant(c.created * 1e6),
		Queued:              instant(c.rare().queued * 1e6),
		AM:                  c.am,
		Reason:              c.reason,
		Tags:                c.rare().tags,
	}
}

// Asks returns an application's outstanding asks, in order.
func (r Reader) Asks(id creel.ApplicationID) []explain.AskView {
	m := r.m
	a := m.apps.byID[id]
	if a == nil {
		return nil
	}
	return append(a.App.Asks(), m.opportunistic.asksOf(a.current)...)
}

// Node returns a node; false if it never registered, or is forgotten.
func (r Reader) Node(id creel.NodeID) (NodeView, bool) {
	n := r.m.nodes.byID[id]
	if n == nil {
		return NodeView{}, false
	}
	return r.nodeView(n), true
}

// Nodes calls yield for each node that is not forgotten, in order of first registration, until it returns false.
func (r Reader) Nodes(yield func(NodeView) bool) {
	for n := range r.m.nodes.remembered {
		if !yield(r.nodeView(n)) {
			return
		}
	}
}

func (r Reader) nodeView(n *node) NodeView {
	m := r.m
	used, total := n.Used(), n.Total()
	v := NodeView{
		ID:             n.ID(),
		HTTPAddress:    n.at.HTTPAddress,
		Rack:           n.Rack(),
		State:          creel.NodeState(n.state),
		Version:        n.version,
		HealthReport:   n.health,
		HealthTime:     n.healthTime,
		LastHeartbeat:  instant(n.heartbeat),
		Total:          m.sizes.Resource(&total),
		Used:           m.sizes.Resource(&used),
		Physical:       n.physical,
		Containers:     n.count,
		Utilization:    n.use,
		Overallocation: n.offer,
		DecommissionBy: instant(n.leaveBy),
		Label:          r.LabelOf(n.ID()),
		Attributes:     r.AttributesOf(n.ID()),
		Tags:           m.sched.Tags().On(&n.Node),
	}
	if o := m.opportunistic; o != nil { // Hadoop counts guaranteed containers here
		_, containers, _ := o.nodes.Booked(n.Serial())
		v.Containers -= containers
	}
	if a := n.Reserved(); a != nil {
		v.Reserved = creel.ContainerID{Attempt: ofSched(a).current.id}
	}
	return v
}

// Queue returns a queue by path or leaf name; false if there is none.
func (r Reader) Queue(name string) (QueueView, bool) {
	m := r.m
	q := m.sched.Tree().Find(name)
	if q == nil {
		return QueueView{}, false
	}
	return r.queueView(q, m.opportunistic.use()), true
}

// Queues calls yield for each queue, parents first, until it returns false.
func (r Reader) Queues(yield func(QueueView) bool) {
	m := r.m
	use := m.opportunistic.use()
	for _, q := range m.sched.Tree().Queues() {
		if !yield(r.queueView(q, use)) {
			return
		}
	}
}

// RunningTimes counts the applications of each queue and its descendants that have had a container, by the time since
// the launch of their first AM: first those below bounds[0], last those from the last bound. bounds ascend.
func (r Reader) RunningTimes(bounds []time.Duration) map[creel.QueuePath][]int {
	m := r.m
	all := map[creel.QueuePath][]int{}
	for _, a := range m.apps.byID {
		if !a.InQueue() || !a.Begun() {
			continue
		}
		ran := time.Duration(0)
		if a.launched > 0 {
			ran = time.Duration(m.now - a.launched)
		}
		at := 0
		for at < len(bounds) && ran >= bounds[at] {
			at++
		}
		for q := a.Queue(); q != nil; q = q.Parent() {
			if all[q.Path()] == nil {
				all[q.Path()] = make([]int, len(bounds)+1)
			}
			all[q.Path()][at]++
		}
	}
	return all
}

func (r Reader) queueView(q *sched.Queue, use queueUse) QueueView {
	m := r.m
	v := QueueView{
		QueueView:     m.sched.Explain().View(q),
		AppsSubmitted: q.Ended.Submitted,
		AppsCompleted: q.Ended.Completed,
		AppsFailed:    q.Ended.Failed,
		AppsKilled:    q.Ended.Killed,
		UAMs:          q.UAMs,
		Waits:         &q.Waits,
	}
	v.OpportunisticContainers, v.Opportunistic = use.of(q, m.sizes)
	return v
}

// Spec is the specification of the queues. It must not be changed.
func (r Reader) Spec() *queues.Spec { return r.m.sched.Tree().Spec() }

// Config returns the machine's configuration with the current queues, read-only.
func (r Reader) Config() *Config { return &r.m.cfg }

// Cluster returns the cluster's totals.
func (r Reader) Cluster() ClusterView {
	m := r.m
	t := m.sched.Explain().Totals()
	v := ClusterView{
		AppsSubmitted:      m.count.apps.Submitted,
		AppsCompleted:      m.count.apps.Completed,
		AppsPending:        int64(t.Waiting) + int64(m.count.held),
		AppsRunning:        int64(t.Activated),
		AppsFailed:         m.count.apps.Failed,
		AppsKilled:         m.count.apps.Killed,
		Total:              m.sizes.Resource(&t.Total),
		Used:               m.sizes.Resource(&t.Used),
		Reserved:           m.sizes.Resource(&t.Reserved),
		AllTotal:           m.sizes.Resource(&t.AllTotal),
		AllUsed:            m.sizes.Resource(&t.AllUsed),
		AllReserved:        m.sizes.Resource(&t.AllReserved),
		Available:          m.sizes.Resource(&t.Available),
		Pending:            m.sizes.Resource(&t.Pending),
		Containers:         m.count.containers,
		ReservedContainers: int32(t.ReservedNodes),
		PendingContainers:  t.PendingContainers,
		InLine:             m.sizes.Resource(&t.InLine),
		InLineContainers:   t.InLineContainers,
		Nodes:              map[creel.NodeState]int{},
		Granted:            m.count.granted,
		Waits:              m.count.waits,
		AMAllocation:       m.count.amAllocation,
		AMLaunch:           m.count.amLaunch,
		AMRegister:         m.count.amRegister,
		Released:           m.count.released,
		Preempted:          m.sched.Tree().Root().Lost.Containers,
	}
	for n := range m.nodes.remembered {
		v.Nodes[creel.NodeState(n.state)]++
	}
	return v
}

// queueUse sums opportunistic containers by queue, over each queue's descendants.
type queueUse map[*sched.Queue]opportunisticUse

// use returns the sums; nil if no opportunistic containers are allocated.
func (o *opportunities) use() queueUse {
	if o == nil || o.counts.Containers == 0 {
		return nil
	}
	all := queueUse{}
	for _, a := range o.m.apps.byID {
		u := a.opportunisticUse(0)
		if u.containers == 0 || !a.InQueue() {
			continue
		}
		for q := a.Queue(); q != nil; q = q.Parent() {
			sum := all[q]
			sum.containers += u.containers
			sum.used.Add(&u.used)
			all[q] = sum
		}
	}
	return all
}

// of returns the sum of one queue.
func (u queueUse) of(q *sched.Queue, sizes *amounts.Sizes) (int32, creel.Resource) {
	sum, has := u[q]
	if !has {
		return 0, creel.Resource{}
	}
	return sum.containers, sizes.Resource(&sum.used)
}
