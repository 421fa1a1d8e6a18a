// SPDX-License-Identifier: Apache-2.0

package places

import (
	"fmt"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/topology"
	"pgregory.net/rapid"
)

type node struct {
	host *topology.Host[node]
	rack *topology.Rack
}

type world struct {
	Pool[node]
	added int32
}

func newWorld(t testing.TB) *world {
	t.Helper()
	types, err := amounts.NewTypes(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	least := creel.NewResource(1024, 1)
	sizes, err := amounts.NewSizes(types, least, least, least)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Pool: Pool[node]{Nodes: &topology.Map[node]{}}}
	w.Nodes.Init(&sizes, func(*node) (*amounts.Vec, bool) { return &amounts.Vec{}, false })
	return w
}

func (w *world) add(host, rack string) *node {
	n := &node{}
	w.Nodes.Skip()
	n.host, n.rack = w.Nodes.Put(w.added, n, host, rack)
	w.added++
	return n
}

func TestPlaceNamedBeforeItsNodeRegisters(t *testing.T) {
	w := newWorld(t)
	var l List[node]
	l.Set(&w.Pool, "h", 1, false)
	l.Set(&w.Pool, "/r", 2, true)
	n, other := w.add("h", "/r"), w.add("o", "/o")
	host, rack := l.OnHost(n.host), l.OnRack(n.rack)
	if host == nil || host.Count != 1 || rack == nil || rack.Count != 2 || !rack.Strict {
		t.Fatalf("host %v, rack %v", host, rack)
	}
	if l.OnHost(other.host) != nil || l.OnRack(other.rack) != nil {
		t.Error("a node elsewhere is at a named place")
	}
	if host.Host != nil || rack.Rack != nil {
		t.Error("resolved before the question")
	}
	w.Resolve(host)
	w.Resolve(rack)
	if host.Host != n.host || rack.Rack != n.rack {
		t.Errorf("resolved to %v and %v", host.Host, rack.Rack)
	}
}

func TestLastContainerRemovesPlace(t *testing.T) {
	w := newWorld(t)
	var l List[node]
	l.Set(&w.Pool, "h", 2, false)
	l.Lower(&w.Pool, l.Place("h"))
	if p := l.Place("h"); p == nil || p.Count != 1 || !l.Any() {
		t.Fatalf("after one of two: %v", p)
	}
	l.Lower(&w.Pool, l.Place("h"))
	l.Lower(&w.Pool, l.Place("h")) // not named any more
	if l.Place("h") != nil || l.Any() {
		t.Error("a place without containers is listed")
	}
	if len(w.unused) != 1 {
		t.Errorf("%d places for reuse", len(w.unused))
	}
}

func TestSetAndDropAllocateNothing(t *testing.T) {
	w := newWorld(t)
	w.add("h", "/r")
	var l List[node]
	if allocs := testing.AllocsPerRun(100, func() {
		l.Set(&w.Pool, "h", 1, false)
		l.Set(&w.Pool, "/r", 1, false)
		l.Set(&w.Pool, "h", 0, false)
		l.Set(&w.Pool, "/r", 0, false)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A list of few and of many places agrees with a map, and lists the places in order of arrival.
func TestListAgreesWithMap(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		var nodes []*node
		var names []string
		for i := range 12 {
			nodes = append(nodes, w.add(fmt.Sprint("h", i), fmt.Sprint("/r", i%5)))
			names = append(names, fmt.Sprint("h", i), fmt.Sprint("/r", i%5))
		}
		type entry struct {
			count  int32
			strict bool
		}
		var l List[node]
		want, order := map[string]entry{}, []string{}
		gone := func(name string) {
			delete(want, name)
			order = slices.DeleteFunc(order, func(x string) bool { return x == name })
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "name")
			if rapid.IntRange(0, 3).Draw(rt, "step") == 0 {
				l.Lower(&w.Pool, l.Place(name))
				if e, has := want[name]; has {
					if e.count--; e.count == 0 {
						gone(name)
					} else {
						want[name] = e
					}
				}
			} else {
				e := entry{rapid.Int32Range(0, 3).Draw(rt, "count"), rapid.Bool().Draw(rt, "strict")}
				l.Set(&w.Pool, name, e.count, e.strict)
				_, had := want[name]
				switch {
				case e.count == 0:
					gone(name)
				case !had:
					order = append(order, name)
					fallthrough
				default:
					want[name] = e
				}
			}
			is := func(p *Place[node], name string) bool {
				e, has := want[name]
				return has == (p != nil) && (!has || p.Name == name && p.Count == e.count && p.Strict == e.strict)
			}
			for _, n := range nodes {
				if !is(l.OnHost(n.host), n.host.Name()) || !is(l.OnRack(n.rack), n.rack.Name()) {
					rt.Fatalf("at %s on %s: %v and %v, want %v", n.host.Name(), n.rack.Name(), l.OnHost(n.host),
						l.OnRack(n.rack), want)
				}
			}
			var hosts, racks []string
			for _, name := range order {
				if !is(l.Place(name), name) {
					rt.Fatalf("%s: %v, want %v", name, l.Place(name), want[name])
				}
				if ofRack(name) {
					racks = append(racks, name)
				} else {
					hosts = append(hosts, name)
				}
			}
			same := func(list []*Place[node], want []string) bool {
				return slices.EqualFunc(list, want, func(p *Place[node], name string) bool { return p.Name == name })
			}
			if !same(l.Hosts, hosts) || !same(l.Racks, racks) || l.Any() != (len(order) > 0) {
				rt.Fatalf("hosts %v, racks %v, want %v", l.Hosts, l.Racks, order)
			}
		}
	})
}
