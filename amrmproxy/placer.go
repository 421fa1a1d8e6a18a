// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// placer splits the AM's asks over the members by the queue's policy, and splits those again that have waited long. It
// changes the shares in the ledger, and hands its results to a placings.
type placer struct {
	cfg    *Config
	links  *links
	ledger *ledger
	rnd    *rand.Rand

	now    time.Time
	queue  creel.QueuePath
	view   *subcluster.View
	policy policies.Policy
	places Places
	label  appLabel // of asks that name no label

	// placedBy is the plan by which the waiting asks were placed last.
	placedBy *subcluster.Plan
	// turn is the member whose waiting asks are placed again next, not before turnAt. turns is the number of members
	// that have not had their turn with the plan placedBy.
	turn, turns int
	turnAt      time.Time
}

// placings takes the results of splits.
type placings interface {
	wantUAM(m *link)      // a member without a UAM gets asks
	refuseAsks(err error) // the policy refuses the AM's asks
}

// see takes the view, the policy and the places. It reports whether the state store came back empty.
func (p *placer) see(e Saw) (emptied bool) {
	emptied = p.view != nil && e.View != nil && p.view.Store != "" && e.View.Store != p.view.Store
	if e.Places != p.places {
		p.ledger.placesChanged()
	}
	p.view, p.policy, p.places = e.View, e.Policy, e.Places
	for _, g := range p.ledger.groups {
		g.dirty = g.dirty || g.adrift || p.mislabelled(g)
	}
	if e.View == nil {
		return emptied
	}
	for i := range e.View.Members {
		st := &e.View.Members[i]
		if m := p.links.member(st.ID); m.observe(st) && !m.home {
			p.ledger.leave(m)
		}
	}
	return emptied
}

// closeSlowMembers closes members that do not answer and opens members that do. If any changed, it marks all groups for
// a new split.
func (p *placer) closeSlowMembers(now time.Time) {
	moved := false
	for _, m := range p.links.members {
		if shut := m.shut(now, p.cfg.SlowAfter); shut != m.closed {
			m.closed, moved = shut, true
		}
	}
	if moved {
		p.ledger.spoil()
	}
}

// placeWaiting places asks again that have waited long in one member, as if the member had no free resources. If the
// member reported too few free resources, they move sooner (overdue).
//
// After a new plan all waiting asks are placed again, except asks for hosts and racks and asks that just moved. They
// follow the queue's entitlements in the plan, also from a member that still grants occasionally. This happens one
// member at a time. A split examines all members, so doing all at once would cost the square of their number at each
// plan.
func (p *placer) placeWaiting(now time.Time, queue creel.QueuePath, out placings) {
	p.now, p.queue = now, queue
	if p.anotherPlan() {
		p.placedBy, p.turns = p.view.Plan, len(p.links.members)
	}
	anew := p.nextTurn()
	var pending pendingTable
	for _, g := range p.ledger.groups {
		if g.need == 0 || g.hedged || g.dirty {
			continue
		}
		star, replace := g.star(), g.rooms && !g.onPlaces()
		for _, m := range p.links.members {
			c := star.at[m]
			if c == nil || c.share == 0 || c.since.IsZero() {
				continue
			}
			why, due := p.overdue(m, g, c)
			if replace && m == anew && c.since.Before(p.now) && (!due || why == beyondRoom) {
				why, due = anotherPlan, true
			}
			if !due {
				continue
			}
			if c.tried = p.now; why == stuck || why == anotherPlan {
				c.since = p.now
			}
			if pending == nil {
				pending = p.pendingTable()
			}
			p.split(pending, g, m, why, out)
		}
	}
}

// turnEvery is the time between two members whose waiting asks are placed again after a plan.
const turnEvery = 100 * time.Millisecond

// nextTurn returns the member whose waiting asks must be placed again now, nil for none.
func (p *placer) nextTurn() *link {
	for p.turns > 0 && !p.now.Before(p.turnAt) {
		m := p.links.members[p.turn%len(p.links.members)]
		p.turn, p.turns = p.turn+1, p.turns-1
		if p.ledger.outstanding(m) > 0 {
			p.turnAt = p.now.Add(turnEvery)
			return m
		}
	}
	return nil
}

// wake returns the time of the next turn, false if there is none.
func (p *placer) wake() (time.Time, bool) { return p.turnAt, p.turns > 0 || p.anotherPlan() }

// anotherPlan reports whether the waiting asks have not been placed by the present plan.
func (p *placer) anotherPlan() bool {
	return p.view != nil && p.view.Plan != nil && p.view.Plan != p.placedBy
}

// overdue reports whether asks of a group have waited in a member for so long that they must be placed again, and the
// reason. If the member reported free resources for fewer asks, they leave after about a heartbeat, provided the
// policy uses free resources. In the subcluster of their hosts and racks they wait longer (3 s by default, as Spark
// does), and stay as long as it has some free resources.
func (p *placer) overdue(m *link, g *group, c *cell) (why replacement, due bool) {
	waited, soon := p.now.Sub(c.since), p.cfg.StuckAfter/100
	if waited > p.cfg.StuckAfter {
		return stuck, true
	}
	if waited <= soon || !g.rooms || m.limit == nil {
		return 0, false
	}
	room := policies.Fitting(resource(m.limit), g.size, m.memoryOnly)
	if room >= c.share {
		return 0, false
	}
	here := slices.ContainsFunc(g.lines, func(ln *line) bool {
		owners := p.owners(ln.name)
		return ln.name != anywhere && ln.want > 0 && len(owners) < len(p.links.members) && slices.Contains(owners, m.id)
	})
	why = beyondRoom
	switch {
	case room == 0 && here:
		why, soon = full, p.cfg.StuckAfter/10
	case room == 0:
		why = full
	case here:
		return 0, false
	}
	return why, waited > soon && p.now.Sub(c.tried) > soon
}

// replacement is the reason why asks that wait in a member are placed again.
type replacement int

const (
	asked       replacement = iota // not waiting: the AM has sent the asks
	anotherPlan                    // there is a new plan of the rebalancer
	beyondRoom                     // the member has free resources for fewer
	full                           // the member has no free resources
	stuck                          // they have waited there too long, so the member counts as full
)

// placeNew splits the groups that need it: the AM has changed them, or members have changed.
func (p *placer) placeNew(now time.Time, queue creel.QueuePath, out placings) {
	p.now, p.queue = now, queue
	var pending pendingTable
	for _, g := range p.ledger.groups {
		if g.dirty && (g.named || !p.wantsLabel() || p.label.asked) {
			if pending == nil {
				pending = p.pendingTable()
			}
			p.split(pending, g, nil, asked, out)
		}
	}
}

// split lets the policy split a group over the members. from, if not nil, is the member whose asks are placed again
// for the reason why. pending has the shares of all groups; split updates it.
func (p *placer) split(pending pendingTable, g *group, from *link, why replacement, out placings) {
	p.count(pending, g, -1)
	defer p.count(pending, g, 1)
	label, _ := p.labelOf(g)
	fresh := g.fresh
	g.dirty, g.fresh = false, false
	reach := make([]policies.Reach, 0, len(p.links.members))
	for _, m := range p.links.members {
		if !m.home && p.view == nil && m.state != linkUp {
			continue
		}
		r := policies.Reach{
			Member: m.id,
			Home:   m.home,
			UAM:    m.inUse() && !m.home,
			Closed: m.closed || slices.Contains(g.barred, m) && !m.home || !m.home && !g.named && p.wantsLabel(),
			Stuck:  m == from && why >= full || slices.Contains(g.left, m),

			Unproven: m.unproven(p.now, p.cfg),
			Delivers: !m.grants.IsZero() && p.now.Sub(m.grants) < p.cfg.StuckAfter,
		}
		if m.limit != nil {
			r.Known, r.Headroom, r.MemoryOnly = true, resource(m.limit), m.memoryOnly
		}
		r.Pending, r.Summed = pending.beside(label, m)
		if m == from && why >= full {
			r.Known, r.Headroom = true, creel.Resource{}
		}
		reach = append(reach, r)
	}
	ask := policies.Group{Count: g.need, Size: g.size, Strict: g.strict, Held: g.held(p.links.members),
		Late: p.now.UnixNano()-g.asked > int64(p.cfg.StuckAfter)}
	ask.Label, ask.LabelGiven = p.labelOf(g)
	if g.key.execution == yarnpb.ExecutionTypeProto_OPPORTUNISTIC {
		ask.LongQueue = p.cfg.LongQueue
	}
	for i := range reach {
		for _, h := range ask.Held {
			if h.Member == reach[i].Member && (from == nil || h.Member != from.id) {
				reach[i].Pending += h.Count
			}
		}
	}
	if from != nil {
		ask.From, ask.Soon = from.id, why == full
		ask.Held = slices.DeleteFunc(ask.Held, func(h policies.Share) bool { return h.Member == from.id })
	}
	for _, ln := range g.lines {
		if ln.name != anywhere && ln.want > 0 {
			ask.Places = append(ask.Places, policies.Place{
				Name: ln.name, Count: ln.want, Members: p.owners(ln.name),
				Strict: strings.HasPrefix(ln.name, "/") && !ln.ask.GetRelaxLocality(),
			})
		}
	}
	plan, err := p.policy.Split(p.view, p.queue, ask, reach, p.rnd)
	if from != nil {
		share := g.star().at[from].share
		// Grants that arrive here during the move are released, so a small move is not worth it.
		most := func(sh policies.Share) bool { return sh.Member == from.id && 2*sh.Count > share }
		if plan.Waiting > 0 && plan.Waiting >= share || why == beyondRoom && slices.ContainsFunc(plan.Shares, most) {
			if why == stuck && g.strict {
				g.left = nil // the members still to come are full, and must not keep the others from a second turn
			}
			return // other members have no free resources either: the asks stay
		}
	}
	if from != nil && len(ask.Places) > 0 {
		if g.strict && slices.ContainsFunc(plan.Shares, func(sh policies.Share) bool {
			return slices.ContainsFunc(g.left, func(m *link) bool { return m.id == sh.Member })
		}) {
			g.left = nil // all had their turn
		}
		if !slices.Contains(g.left, from) {
			g.left = append(g.left, from)
		}
	}
	g.reason, g.hedged, g.rooms, g.adrift = plan.Reason, plan.Hedged, plan.Rooms, plan.Unplaced > 0
	if err != nil {
		if fresh || !errors.Is(err, creel.ErrInvalidLabel) {
			out.refuseAsks(err)
		}
		return // asks whose label was removed wait, as in a ResourceManager
	}
	g.apply(p.links.members, plan.Shares, p.owners, p.now)
	for _, m := range p.links.members {
		m.news = m.news || m.inUse()
	}
	for _, sh := range plan.Shares {
		if m := p.links.member(sh.Member); m.state == linkNone {
			out.wantUAM(m)
		}
	}
}

func (p *placer) owners(name string) []creel.SubclusterID {
	if p.places == nil {
		return nil
	}
	return p.places.Where(name)
}
