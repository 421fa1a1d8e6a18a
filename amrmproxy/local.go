// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/levels"
)

// With distributed scheduling the session places opportunistic containers itself. A member that serves it lists its
// least loaded nodes in each answer. The session places the member's share of an opportunistic ask on them at once, and
// reports the containers with its next call to the member, which an AM's call makes if none is under way. The AM gets
// them after the member has taken the report, mostly in the answer to the same call. So if this proxy fails before
// that, no container is lost: the AM has not received it. The call also has the number of containers without a node,
// which the member counts as the application's asks.

// Issuer makes tokens with a member's keys.
type Issuer interface {
	// Issues describes the member's keys that it has.
	Issues(member creel.SubclusterID) (s Signing, ok bool)
	// Container makes the token of a placed container.
	Container(member creel.SubclusterID, c *PlacedContainer) (t *yarnpb.TokenProto, ok bool)
	// Node makes the token for an AM's calls to the node of a placed container.
	Node(member creel.SubclusterID, c *PlacedContainer) (t *yarnpb.TokenProto, ok bool)
}

// Signing describes the keys of one start of a member's ResourceManager.
type Signing struct {
	NodeKey int32 // number of the key for tokens of nodes
	Epoch   int64 // of the start: nodes reject containers of an earlier one
}

// PlacedContainer is an opportunistic container that a session places.
type PlacedContainer struct {
	ID                  creel.ContainerID
	Node                creel.NodeID
	User                string // of the application
	Resource            creel.Resource
	Created, Expires    time.Time
	Priority            int32
	AllocationRequestID int64
	Label               string // of the node
}

// turnIDs is the number of ids of one proxy. A later proxy does not know which ids the earlier ones used, and a late
// report of an earlier one may arrive at any time.
const turnIDs = 1 << 24

// local is the session's placing in one member. Unless ready, the member places opportunistic containers itself.
type local struct {
	terms  *yarnpb.RegisterDistributedSchedulingAMResponseProto
	ready  bool   // the terms and the issuer's keys are of the same start of the member
	gen    uint64 // of the record that must be durable before containers are placed
	nextID int64  // ids count down
	lastID int64
	loaded []*loadedNode // the least loaded first
	fresh  []*yarnpb.ContainerProto
	sent   []*yarnpb.ContainerProto // reported by the call under way
	tokens map[creel.NodeID]int32   // key of the AM's last token for a node
}

// loadedNode is a node of a member's list.
type loadedNode struct {
	at     *yarnpb.RemoteNodeProto
	id     creel.NodeID
	placed bool // it got a container since the AM's last call
}

// begin takes the terms of a member; nil if it does not serve distributed scheduling.
func (l *local) begin(terms *yarnpb.RegisterDistributedSchedulingAMResponseProto, turn int64, gen uint64) {
	if terms == nil {
		*l = local{}
		return
	}
	used := l.nextID
	l.terms, l.gen = terms, gen
	l.lastID = terms.GetContainerIdStart() - (turn+1)*turnIDs
	l.nextID = l.lastID + turnIDs
	if used > l.lastID && used < l.nextID {
		l.nextID = used // it registers again at the same start, and a report may be late
	}
	l.take(terms.NodesForScheduling)
	if l.tokens == nil {
		l.tokens = map[creel.NodeID]int32{}
	}
}

// take takes the list of the member's least loaded nodes. A node that got a container since the AM's last call gets no
// other one, because the member may have made the list before that.
func (l *local) take(list []*yarnpb.RemoteNodeProto) {
	nodes := make([]*loadedNode, len(list))
	for i, n := range list {
		nodes[i] = &loadedNode{at: n, id: yarnpb.ToNodeID(n.GetNodeId())}
		nodes[i].placed = slices.ContainsFunc(l.loaded, func(o *loadedNode) bool {
			return o.placed && o.id == nodes[i].id
		})
	}
	l.loaded = nodes
}

// forget drops the terms of a start of the member that is over.
func (l *local) forget() { l.terms, l.ready = nil, false }

// epoch is the epoch of the start that gave the terms.
func (l *local) epoch() int64 {
	return creel.ContainerID{ID: l.terms.GetContainerIdStart() - 1}.Epoch()
}

// again lets each node get another container.
func (l *local) again() {
	for _, n := range l.loaded {
		n.placed = false
	}
}

// places reports whether the session places the group's containers in the member. It leaves an ask above the member's
// largest container to the member, which refuses it.
func (m *link) places(g *group) bool {
	if !m.ready || g.key.execution != yarnpb.ExecutionTypeProto_OPPORTUNISTIC {
		return false
	}
	_, ok := m.round(g.size)
	return ok
}

// round returns the size of a container, in whole steps and at least the smallest; false if it is too large.
func (m *link) round(r creel.Resource) (creel.Resource, bool) {
	least, most := resource(m.terms.MinContainerResource), resource(m.terms.MaxContainerResource)
	step := least
	if m.terms.IncrContainerResource != nil {
		step = resource(m.terms.IncrContainerResource)
	}
	ok := true
	fit := func(name string) int64 {
		x, least, most := r.Get(name), least.Get(name), most.Get(name)
		ok = ok && x >= 0 && (x <= most || m.memoryOnly && name == creel.VCoresName)
		x = max(x, least)
		if step := step.Get(name); step > 1 {
			x = (x + step - 1) / step * step
		}
		return min(x, max(most, least))
	}
	out := creel.NewResource(fit(creel.MemoryName), fit(creel.VCoresName))
	for _, a := range slices.Concat(r.Others, least.Others) {
		out = out.With(a.Name, fit(a.Name))
	}
	if m.memoryOnly {
		out.VCores = 1
	}
	return out, ok
}

// emplacer places containers of opportunistic asks on the nodes of the members' lists. Without an issuer it places
// none.
type emplacer struct {
	issuer  Issuer
	attempt creel.AttemptID
	links   *links
	ledger  *ledger
	placer  *placer
	record  *recorder
}

// wantsUser reports whether the application's owner is needed and unknown: tokens name the owner.
func (e *emplacer) wantsUser() bool {
	return e.record.User == "" && e.links.any(func(m *link) bool { return m.terms != nil })
}

// issues reports whether the session places containers in a member that serves distributed scheduling.
func (e *emplacer) issues(m *link) bool {
	if e.issuer == nil {
		return false
	}
	_, ok := e.issuer.Issues(m.id)
	return ok
}

// restore continues at home with the terms of the record. Late reports of earlier proxies may arrive at any member, so
// this one uses other ids.
func (e *emplacer) restore(home *link, record *Record, same bool) {
	if e.issuer == nil {
		return
	}
	e.record.Turn = record.Turn + 1
	if same && e.record.Terms != nil {
		home.begin(e.record.Terms, e.record.Turn, e.record.gen)
	}
}

// begin takes the terms of a registration. Home's are recorded: a later proxy does not register there again.
func (e *emplacer) begin(m *link, terms *yarnpb.RegisterDistributedSchedulingAMResponseProto) {
	gen := uint64(0)
	if m.home && (terms != nil || e.record.Terms != nil) {
		gen = e.record.changed()
		e.record.Terms = nil
		if terms != nil {
			e.record.Terms = terms.CloneVT()
			e.record.Terms.NodesForScheduling = nil
		}
	}
	m.begin(terms, e.record.Turn, gen)
}

// prepare checks whether the session can place containers in a member. With keys of another start its nodes would
// reject them.
func (e *emplacer) prepare(m *link) {
	k, ok := e.issuer.Issues(m.id)
	if ready := ok && m.terms != nil && k.Epoch == m.epoch(); ready != m.ready {
		m.ready, m.news = ready, true
	}
}

// place places containers of opportunistic asks in the members that list their nodes. out is the AM's next answer.
func (e *emplacer) place(now time.Time, out *yarnpb.AllocateResponseProto) {
	if e.issuer == nil {
		return
	}
	for _, m := range e.links.members {
		if e.prepare(m); !m.ready || e.record.User == "" || m.state != linkUp ||
			m.closed || !e.record.isDurable(m.local.gen) {
			continue
		}
		for _, g := range e.ledger.groups {
			if c := g.star().at[m]; c != nil && c.share > 0 && g.need > 0 && m.places(g) && g.isClear(m) {
				e.placeGroup(m, g, int32(min(c.share, g.need, 1<<31-1)), now, out)
			}
		}
	}
}

// placeGroup places up to n containers of a group in a member.
func (e *emplacer) placeGroup(
	m *link, g *group, n int32, now time.Time, out *yarnpb.AllocateResponseProto,
) {
	label, _ := e.placer.labelOf(g)
	var suits []*loadedNode
	for _, x := range m.local.loaded {
		host, rack := x.id.Host, x.at.GetRackName()
		if x.at.GetNodePartition() == label && !e.ledger.blacklist[host] && !e.ledger.blacklist[rack] {
			suits = append(suits, x)
		}
	}
	if len(suits) == 0 {
		return
	}
	ask := levels.Ask{Count: n, Strict: g.strict}
	for _, ln := range g.lines {
		if c := ln.at[m]; ln.name != anywhere && c != nil && c.share > 0 {
			ask.Places = append(ask.Places, &levels.Place{
				Name: ln.name, Count: int32(min(c.share, 1<<31-1)), Strict: !ln.ask.GetRelaxLocality(),
			})
		}
	}
	with := func(has func(*loadedNode) bool) []*loadedNode {
		return slices.DeleteFunc(slices.Clone(suits), func(x *loadedNode) bool { return !has(x) })
	}
	nodes := levels.Nodes[*loadedNode]{
		Host: func(name string) []*loadedNode { return with(func(x *loadedNode) bool { return x.id.Host == name }) },
		Rack: func(name string) []*loadedNode {
			return with(func(x *loadedNode) bool { return x.at.GetRackName() == name })
		},
		Least: suits,
		Start: func(int) int { return 0 },
		More:  func() bool { return m.local.nextID > m.local.lastID },
		Place: func(x *loadedNode, at levels.Level) bool {
			return (at == levels.OnHost || !x.placed) && e.placeOn(m, g, x, now, out)
		},
	}
	nodes.Serve(&ask)
}

// placeOn places one container of a group on a node.
func (e *emplacer) placeOn(
	m *link, g *group, x *loadedNode, now time.Time, out *yarnpb.AllocateResponseProto,
) bool {
	attempt := m.attempt
	if m.home {
		attempt = e.attempt
	}
	size, _ := m.round(g.size)
	life := time.Duration(m.terms.GetContainerTokenExpiryInterval()) * time.Millisecond
	p := &PlacedContainer{
		ID: creel.ContainerID{Attempt: attempt, ID: m.local.nextID - 1}, Node: x.id, User: e.record.User,
		Resource: size, Created: now, Expires: now.Add(life), Priority: g.key.priority,
		AllocationRequestID: g.key.request, Label: x.at.GetNodePartition(),
	}
	token, ok := e.issuer.Container(m.id, p)
	if !ok {
		return false
	}
	if k, _ := e.issuer.Issues(m.id); !m.hasToken(x.id, k.NodeKey) {
		node, ok := e.issuer.Node(m.id, p)
		if !ok {
			return false
		}
		m.tokens[x.id] = k.NodeKey
		out.NmTokens = append(out.NmTokens, &yarnpb.NMTokenProto{NodeId: x.at.NodeId, Token: node})
	}
	m.local.nextID--
	x.placed = true
	e.ledger.place(m, g, &yarnpb.ContainerProto{
		Id: yarnpb.FromContainerID(p.ID), NodeId: x.at.NodeId, NodeHttpAddress: x.at.HttpAddress,
		Resource: yarnpb.FromResource(size), Priority: yarnpb.FromPriority(p.Priority), ContainerToken: token,
		ExecutionType:       yarnpb.ExecutionTypeProto_OPPORTUNISTIC.Enum(),
		AllocationRequestId: proto.Int64(p.AllocationRequestID), Version: proto.Int32(0),
	}, now)
	return true
}

// hasToken reports whether the AM has a token for a node, signed with the key.
func (l *local) hasToken(node creel.NodeID, key int32) bool {
	k, ok := l.tokens[node]
	return ok && k == key
}

// place records a container that the session has placed. It counts as a grant of the member, and the AM has not
// received it yet.
func (l *ledger) place(m *link, g *group, c *yarnpb.ContainerProto, now time.Time) {
	o := &heldContainer{by: m, id: c.GetId(), untold: true}
	l.held.hold(containerID(c.GetId()), o)
	g.granted(m, c.GetNodeId().GetHost(), now)
	l.waits.Add(time.Duration(now.UnixNano() - g.asked))
	l.granted, m.used, m.news = true, true, true
	m.fresh = append(m.fresh, c)
}

// announce moves the placed containers into a call to the member.
func (m *link) announce() []*yarnpb.ContainerProto {
	m.sent, m.fresh = m.fresh, nil
	return m.sent
}

// unannounced returns the containers of a call that the member did not accept to the next call.
func (m *link) unannounced() { m.sent, m.fresh = nil, slices.Concat(m.sent, m.fresh) }

// reported adds to the answer the containers that the member has taken, if the AM still wants them.
func (l *ledger) reported(m *link, r *yarnpb.AllocateResponseProto) {
	for _, c := range m.sent {
		if o := l.held.live[containerID(c.GetId())]; o != nil && o.untold {
			r.AllocatedContainers = append(r.AllocatedContainers, c)
		}
	}
	m.sent = nil
}

// unplace forgets the placed containers that the member has not taken: it has restarted, or the UAM has ended. Their
// asks are open again.
func (l *ledger) unplace(m *link) {
	for _, c := range slices.Concat(m.sent, m.fresh) {
		l.discard(c)
	}
	m.sent, m.fresh = nil, nil
}

// discard forgets a placed container that neither its AM nor its member knows.
func (l *ledger) discard(c *yarnpb.ContainerProto) {
	id := containerID(c.GetId())
	o := l.held.live[id]
	if o == nil {
		return
	}
	l.held.complete(id, o)
	if g := l.of(c, o); o.untold && g != nil {
		g.ungrant(c.GetNodeId().GetHost())
	}
}

// withdrawPlaced removes placed containers that the AM no longer wants, and has not received. The member releases
// those that are being reported.
func (l *ledger) withdrawPlaced(g *group, now time.Time) {
	for _, m := range l.links.members {
		for i := len(m.fresh) - 1; i >= 0 && g.need < 0; i-- {
			if c := m.fresh[i]; l.of(c, nil) == g {
				m.fresh = slices.Delete(m.fresh, i, i+1)
				l.discard(c)
			}
		}
		for i := len(m.sent) - 1; i >= 0 && g.need < 0; i-- {
			c := m.sent[i]
			o := l.held.live[containerID(c.GetId())]
			if o == nil || !o.untold || l.of(c, o) != g {
				continue
			}
			g.need++
			g.unsent--
			o.surplus, o.untold = true, false
			l.release(c.GetId(), now)
		}
	}
}
