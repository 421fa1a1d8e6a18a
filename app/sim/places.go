// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/workload"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/resolver"
)

// DrawPlaces draws the fraction of a seed's applications that name hosts and racks: zero in every second seed.
func DrawPlaces(seed uint64) float64 {
	rnd := source(seed, "places")
	if rnd.IntN(2) == 0 {
		return 0
	}
	return 0.6 * rnd.Float64()
}

// rackOf is the rack of a member's node: one common to all members, one common to two, or one of a single member.
func rackOf(member, node int) string {
	switch node % 4 {
	case 0:
		return "/default-rack"
	case 1:
		return fmt.Sprintf("/aisle-%d", member/2)
	default:
		return fmt.Sprintf("/rack-%d-%d", member+1, node%2)
	}
}

// wish has the places at which an AM wants its containers of one priority: any of the hosts, or of the racks. strict
// excludes other places.
type wish struct {
	hosts, racks []string
	strict       bool
}

// wishes draws the requested places of a job's AM for each of its priorities, the same for each of its attempts.
func (w *World) wishes(job int) map[int32]*wish {
	rnd := rand.New(rand.NewPCG(w.cfg.Seed, uint64(job)<<8|0x91ace5))
	if w.cfg.Places == 0 || rnd.Float64() >= w.cfg.Places {
		return nil
	}
	out := map[int32]*wish{}
	for _, p := range []int32{workload.FailedMapPriority, workload.ReducePriority, workload.MapPriority} {
		if rnd.IntN(4) == 0 {
			continue
		}
		h := &wish{strict: rnd.IntN(3) == 0}
		some := func() *node {
			c := w.clusters[rnd.IntN(len(w.clusters))]
			return c.nodes[rnd.IntN(len(c.nodes))]
		}
		if kind := rnd.IntN(3); kind > 0 {
			for range 1 + rnd.IntN(3) {
				h.hosts = append(h.hosts, some().conf.ID.Host)
			}
			if !h.strict && rnd.IntN(8) == 0 {
				h.hosts = append(h.hosts, "a-host-of-nobody")
			}
		} else {
			h.racks = append(h.racks, some().rack)
		}
		if rnd.IntN(4) == 0 {
			h.racks = append(h.racks, some().rack)
		}
		for _, names := range []*[]string{&h.hosts, &h.racks} {
			slices.Sort(*names)
			*names = slices.Compact(*names)
		}
		out[p] = h
	}
	return out
}

// insists reports whether an AM wants containers that are useless elsewhere.
func (m *am) insists() bool {
	if m == nil {
		return false
	}
	for _, h := range m.wishes {
		if h.strict {
			return true
		}
	}
	return false
}

// takes reports whether a container on a node satisfies the wish.
func (h *wish) takes(n *node) bool {
	return slices.Contains(h.hosts, n.conf.ID.Host) || slices.Contains(h.racks, n.rack)
}

// requests returns an ask's lines as written by Hadoop's AMRMClient: the hosts, their racks, the requested racks, and
// the total. If only the hosts are acceptable, the lines of their racks exclude other hosts.
func (m *am) requests(a typed) []*pb.ResourceRequestProto {
	line := func(name string, n int32, relax bool) *pb.ResourceRequestProto {
		return &pb.ResourceRequestProto{
			Priority:            pb.FromPriority(a.Priority),
			ResourceName:        proto.String(name),
			Capability:          pb.FromResource(a.Size),
			NumContainers:       proto.Int32(n),
			RelaxLocality:       proto.Bool(relax),
			AllocationRequestId: proto.Int64(-1),
			ExecutionTypeRequest: &pb.ExecutionTypeRequestProto{
				ExecutionType:        pb.ExecutionTypeProto(a.kind).Enum(),
				EnforceExecutionType: proto.Bool(false),
			},
		}
	}
	h := m.wishes[a.Priority]
	if h == nil {
		return []*pb.ResourceRequestProto{line(a.Name, a.Count, true)}
	}
	each := a.Count // each of them is acceptable
	if n := int32(len(h.hosts)); !h.strict && n > 1 {
		each = (a.Count + n - 1) / n
	}
	var out []*pb.ResourceRequestProto
	onRack := map[string]int32{}
	for _, host := range h.hosts {
		out = append(out, line(host, each, true))
		if n := m.w.hostsOf[host]; n != nil {
			onRack[n.rack] = min(a.Count, onRack[n.rack]+each)
		}
	}
	for _, rack := range h.racks {
		delete(onRack, rack)
		out = append(out, line(rack, a.Count, true))
	}
	for _, rack := range slices.Sorted(maps.Keys(onRack)) {
		out = append(out, line(rack, onRack[rack], !h.strict))
	}
	return append(out, line(a.Name, a.Count, !h.strict))
}

// sayAgain makes an AM that names places send the numbers of containers still wanted there. As in Hadoop's
// AMRMClient, each grant reduces the numbers of all lines of its ask.
func (m *am) sayAgain(grants []workload.Grant) {
	for _, g := range grants {
		said := func(a workload.Ask) bool { return a.Priority == g.Priority }
		if m.wishes[g.Priority] == nil || slices.ContainsFunc(m.steps.Asks, said) {
			continue
		}
		last := m.lastSaid[g.Priority]
		last.Count = int32(len(m.asked[g.Priority]))
		m.say(workload.Steps{Asks: []workload.Ask{last}})
	}
}

// documents is the state store's documents, for a flow.
type documents struct{ f *flow }

func (d documents) Documents(_ context.Context, class string) (statestore.DocumentSet, error) {
	w := d.f.w
	return ask(d.f, w.storeAt, storeTime, func(reply func(statestore.DocumentSet, error)) {
		reply(atStore(w, false, func() (statestore.DocumentSet, error) {
			return w.store.Documents(w.storeClock(), class)
		}))
	})
}

func (d documents) DocumentsSince(
	_ context.Context, class string, before statestore.DocumentSet,
) (statestore.DocumentSet, error) {
	w := d.f.w
	return ask(d.f, w.storeAt, storeTime, func(reply func(statestore.DocumentSet, error)) {
		reply(atStore(w, false, func() (statestore.DocumentSet, error) {
			return w.store.DocumentsSince(w.storeClock(), class, before)
		}))
	})
}

func (d documents) DocumentOf(
	_ context.Context, class, name string, queues []string,
) (statestore.Document, error) {
	w := d.f.w
	return ask(d.f, w.storeAt, storeTime, func(reply func(statestore.Document, error)) {
		reply(atStore(w, false, func() (statestore.Document, error) { return w.store.DocumentOf(class, name, queues) }))
	})
}

func (d documents) PutDocument(ctx context.Context, write statestore.DocumentWrite) (statestore.Document, error) {
	w := d.f.w
	lease, fenced := statestore.FenceOf(ctx)
	return ask(d.f, w.storeAt, storeTime, func(reply func(statestore.Document, error)) {
		reply(atStore(w, true, func() (statestore.Document, error) {
			if err := w.store.Check(lease); fenced && err != nil {
				return statestore.Document{}, err
			}
			made, err := w.store.PutDocument(w.storeClock(), write)
			if err == nil && !write.Quiet {
				w.tell(statestore.Change{Kind: statestore.ChangeDocuments, Class: write.Class, Version: made.Version})
			}
			return made, err
		}))
	})
}

const (
	publishEvery = 5 * time.Second // between a ResourceManager's checks of its published hosts
	followTime   = 10 * time.Second
	followJitter = 2 * time.Second // before a proxy reads a member's changed hosts
)

// publish keeps the member's published hosts up to date, like resolver/server.Publisher.
func (c *cluster) publish() {
	if c.hadoop {
		return
	}
	c.w.on(c.host, publishEvery, c.publish)
	if c.inRound {
		return
	}
	c.inRound = true
	there, is := resolver.Nodes{}, c.places
	maps.Insert(there, c.m.Racks)
	c.w.start(c.host, publishEvery, func(f *flow) {
		if err := is.Round(f, documents{f}, there); err != nil {
			c.w.say("%s does not publish its hosts: %v", c.id, err)
		}
	}, func() { c.inRound = false })
}

// follow reads the members' hosts when the view announces a change, like resolver/server.Follower.
func (p *proxy) follow() {
	if p.inRound || !p.places.Behind(p.view) {
		return
	}
	p.inRound = true
	is, view := p.places, p.view
	p.w.start(p.host, followTime, func(f *flow) {
		err := is.Round(f, documents{f}.Documents, view, nil, false, func(ctx context.Context) bool {
			return f.sleep(ctx, time.Duration(p.w.rnd.Int64N(int64(followJitter)))) == nil
		})
		if err != nil {
			p.w.say("%s failed to read the members' hosts: %v", p.name, err)
		}
	}, func() { p.inRound = false })
}

// placed checks that an AM that insists on hosts or racks receives containers nowhere else.
func (a *auditor) placed(m *am, g workload.Grant) {
	h, n := m.wishes[g.Priority], a.w.nodes[g.Node]
	if h == nil {
		return
	}
	if h.takes(n) {
		a.fault("containers where they were wished for")
	}
	a.check(!h.strict || h.takes(n), "%s insists on %v %v at priority %d, and was given %s on %s in %s",
		m.attempt, h.hosts, h.racks, g.Priority, g.Container, n.conf.ID.Host, n.rack)
}

// sent checks a proxy's asks. It asks no member for a place that, as it knows, another member has. Containers with
// mandatory places are requested from a member that has one of them, or at home, where they wait if no member can
// have them.
func (a *auditor) sent(s *session, to *cluster, said *pb.AllocateRequestProto) {
	if said == nil || s.told[to.index] == said {
		return // a repeat: the proxy's knowledge at the first call counts
	}
	s.told[to.index] = said
	a.notOfADrained(s, to, said)
	if a.w.cfg.Places == 0 || a.apps[s.attempt.Application].twice {
		return // of two homes either is the session's home, as in notOfADrained
	}
	table := s.proxy.places.Table()
	elsewhere := func(name string) bool {
		at := table.Where(name)
		return len(at) > 0 && !slices.Contains(at, to.id)
	}
	m := a.apps[s.attempt.Application].am
	for _, ask := range said.Ask {
		h := m.wishes[ask.GetPriority().GetPriority()]
		switch name := ask.GetResourceName(); {
		case h == nil || ask.GetNumContainers() == 0:
		case name != "*":
			a.check(!elsewhere(name), "%s asks %s for %d containers on %s, which %v has",
				s.attempt, to.id, ask.GetNumContainers(), name, table.Where(name))
		case h.strict && to != s.proxy.home:
			all := slices.Concat(h.hosts, h.racks)
			here, known := false, false
			for _, name := range all {
				at := table.Where(name)
				here, known = here || slices.Contains(at, to.id), known || len(at) > 0
			}
			a.check(here || !known, "%s asks %s for %d containers, insists on %v, and %s has none of these",
				s.attempt, to.id, ask.GetNumContainers(), all, to.id)
		}
	}
}

// notOfADrained checks that a proxy asks a drained member for nothing, once it sees the drain, for an application
// with another home. After a store lost writes, an application may have two homes, with sessions that consider either
// of them its home.
func (a *auditor) notOfADrained(s *session, to *cluster, said *pb.AllocateRequestProto) {
	if to == s.proxy.home || s.proxy.view == nil || a.apps[s.attempt.Application].twice {
		return
	}
	m, ok := s.proxy.view.Member(to.id)
	for _, ask := range said.Ask {
		a.check(!ok || m.State != subcluster.StateDraining || ask.GetNumContainers() == 0,
			"%s asks %s, which is drained, for %d containers", s.attempt, to.id, ask.GetNumContainers())
	}
}
