// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// running is a container as the slow reference knows it.
type running struct {
	app  *App
	node *Node
	tags []string
}

// meets is a second implementation of a clause about tags: it counts containers one by one.
func meets(c *Constraint, all []running, a *App, n *Node) bool {
	t := &c.Targets[0]
	least, most := int32(math.MaxInt32), int32(0)
	for _, tag := range t.Values {
		count := int32(0)
		for _, k := range all {
			near := k.node == n || c.Rack && k.node.Rack == n.Rack
			belongs := map[Namespace]bool{
				OfSelf: k.app == a, OfOthers: k.app != a, OfAll: true, OfApp: k.app.ID == t.App,
				OfTagged: slices.Contains(k.app.Tags, t.AppTag),
			}[t.Namespace]
			if near && belongs && slices.Contains(k.tags, tag) {
				count++
			}
		}
		least, most = min(least, count), max(most, count)
	}
	return (c.Min <= 0 || least >= c.Min) && most <= c.Max
}

func TestCountedTagsDecideLikeListedContainers(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		var tags Tags
		var nodes []*Node
		var apps []*App
		var all []running
		for i := range int32(4) {
			nodes = append(nodes, &Node{Serial: i, Rack: fmt.Sprintf("/r%d", i%2)})
		}
		for i := range int32(3) {
			id := creel.ApplicationID{ClusterTimestamp: 1, ID: i + 1}
			apps = append(apps, &App{ID: id, Tags: [][]string{{"red"}, {"red", "blue"}, nil}[i]})
		}
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 1, 2, rapid.ID)
		for range rapid.IntRange(1, 30).Draw(rt, "events") {
			a, n := rapid.SampledFrom(apps).Draw(rt, "app"), rapid.SampledFrom(nodes).Draw(rt, "node")
			switch event := rapid.IntRange(0, 3).Draw(rt, "event"); {
			case event == 0 && len(all) > 0:
				i := rapid.IntRange(0, len(all)-1).Draw(rt, "ends")
				tags.Count(all[i].app, *all[i].node, all[i].tags, -1)
				all = slices.Delete(all, i, i+1)
			case event == 1:
				to := rapid.SampledFrom([]string{"/r0", "/r1", "/r2"}).Draw(rt, "rack")
				if tags.Move(*n, to); to != n.Rack {
					n.Rack = to
				}
			default:
				k := running{a, n, names.Draw(rt, "tags")}
				tags.Count(a, *n, k.tags, 1)
				all = append(all, k)
			}
			c := &Constraint{
				Rack: rapid.Bool().Draw(rt, "by rack"), Min: rapid.Int32Range(0, 2).Draw(rt, "min"),
				Targets: []Target{{
					Namespace: Namespace(rapid.IntRange(0, numSpaces-1).Draw(rt, "space")), Values: names.Draw(rt, "of"),
					App: rapid.SampledFrom(apps).Draw(rt, "id").ID, AppTag: rapid.SampledFrom([]string{"red", "blue"}).Draw(rt, "team"),
				}},
			}
			c.Max = c.Min + rapid.Int32Range(0, 2).Draw(rt, "more")
			for _, a := range apps {
				for _, n := range nodes {
					if got, want := tags.Refused(c, a, n) == nil, meets(c, all, a, n); got != want {
						rt.Fatalf("%v for %v on node %d: %v, want %v", c, a.ID, n.Serial, got, want)
					}
				}
			}
		}
		for _, k := range all {
			tags.Count(k.app, *k.node, k.tags, -1)
		}
		if len(tags.nodes)+len(tags.racks) > 0 {
			rt.Errorf("counts are left: %v %v", tags.nodes, tags.racks)
		}
	})
}

func TestCompositeNamesTheClauseThatRefuses(t *testing.T) {
	var tags Tags
	tags.SetAttributes("h1", map[string]string{"rm.yarn.io/os": "linux"})
	os := func(value string, not bool) *Constraint {
		return &Constraint{NotEqual: not, Targets: []Target{{Kind: ByAttribute, Key: "rm.yarn.io/os", Values: []string{value}}}}
	}
	label := &Constraint{Targets: []Target{{Kind: ByPartition, Values: []string{"gpu"}}}}
	wrong := &Constraint{Wrong: "unsupported"}
	linux, bsd, notBSD := os("linux", false), os("bsd", false), os("bsd", true)
	either := &Constraint{Op: AnyOf, Parts: []*Constraint{bsd, wrong}}
	n := &Node{Host: "h1", Label: "gpu"}
	for _, c := range []struct{ c, want *Constraint }{
		{nil, nil},
		{linux, nil},
		{bsd, bsd},
		{notBSD, nil},
		{label, nil},
		{wrong, wrong},
		{Both(linux, notBSD, bsd), bsd},
		{either, either},
		{&Constraint{Op: AnyOf, Parts: []*Constraint{bsd, linux}}, nil},
	} {
		if got := tags.Refused(c.c, &App{}, n); got != c.want {
			t.Errorf("%v is refused by %v, want %v", c.c, got, c.want)
		}
	}
	if tags.SetAttributes("h1", nil); tags.Refused(notBSD, &App{}, n) != nil || tags.Refused(linux, &App{}, n) != linux {
		t.Error("a host without the attribute is not different from its value")
	}
	if got := Worst(map[*Constraint]int{linux: 1, bsd: 2, notBSD: 2}); got != notBSD {
		t.Errorf("the worst clause is %v", got)
	}
}
