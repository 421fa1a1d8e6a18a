// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
	"pgregory.net/rapid"
)

// placedContainer is a container as the slow reference knows it.
type placedContainer struct {
	app  *App
	node *Node
	tags []string
	size *amounts.Size
}

// constrainedWorld is a scheduler with tags, and everything it should know as a list.
type constrainedWorld struct {
	t          *rapid.T
	s          *Scheduler
	apps       []*App
	nodes      []*Node
	containers []placedContainer
	attributes map[string]string // os of hosts
	wants      []*constraints.Want
}

// holds checks by every container whether a constraint admits an application on a node. It is a second implementation
// of constraints.Constraint.
func (w *constrainedWorld) holds(c *constraints.Constraint, a *App, n *Node) bool {
	switch {
	case c == nil:
		return true
	case c.Wrong != "":
		return false
	case c.Op == constraints.AllOf:
		return !slices.ContainsFunc(c.Parts, func(p *constraints.Constraint) bool { return !w.holds(p, a, n) })
	case c.Op == constraints.AnyOf:
		return slices.ContainsFunc(c.Parts, func(p *constraints.Constraint) bool { return w.holds(p, a, n) })
	}
	for _, t := range c.Targets {
		if t.Kind == constraints.ByAttribute {
			value, has := w.attributes[n.id.Host]
			if c.NotEqual == (has && value == t.Values[0]) {
				return false
			}
			continue
		}
		least, most := math.MaxInt, 0
		for _, tag := range t.Values {
			count := 0
			for _, k := range w.containers {
				near := k.node == n || c.Rack && k.node.Rack() == n.Rack()
				if near && slices.Contains(k.tags, tag) && w.means(&t, a, k.app) {
					count++
				}
			}
			least, most = min(least, count), max(most, count)
		}
		if c.Min > 0 && least < int(c.Min) || c.Max < math.MaxInt32 && most > int(c.Max) {
			return false
		}
	}
	return true
}

func (w *constrainedWorld) means(t *constraints.Target, a, other *App) bool {
	switch t.Namespace {
	case constraints.OfSelf:
		return a == other
	case constraints.OfOthers:
		return a != other
	case constraints.OfApp:
		return other.id == t.App
	case constraints.OfTagged:
		return slices.Contains(other.tagged.Tags, t.AppTag)
	}
	return true
}

func (w *constrainedWorld) drawConstraint(depth int) *constraints.Constraint {
	t := w.t
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "composite") == 0 {
		c := &constraints.Constraint{Op: rapid.SampledFrom([]constraints.ConstraintOp{constraints.AllOf, constraints.AnyOf}).Draw(t, "op")}
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			c.Parts = append(c.Parts, w.drawConstraint(depth-1))
		}
		return c
	}
	if rapid.IntRange(0, 4).Draw(t, "attribute") == 0 {
		return &constraints.Constraint{Min: -1, Max: -1, NotEqual: rapid.Bool().Draw(t, "ne"), Targets: []constraints.Target{{
			Kind: constraints.ByAttribute, Key: "rm.yarn.io/os", Values: []string{rapid.SampledFrom(systems).Draw(t, "os")},
		}}}
	}
	target := constraints.Target{
		Namespace: constraints.Namespace(rapid.IntRange(0, int(constraints.OfTagged)).Draw(t, "space")),
		App:       rapid.SampledFrom(w.apps).Draw(t, "of").id, AppTag: rapid.SampledFrom(teams).Draw(t, "team"),
		Values: rapid.SliceOfNDistinct(rapid.SampledFrom(tags), 1, 2, rapid.ID).Draw(t, "tags"),
	}
	c := &constraints.Constraint{Rack: rapid.Bool().Draw(t, "rack"), Targets: []constraints.Target{target}}
	switch rapid.IntRange(0, 2).Draw(t, "form") {
	case 0: // not in
	case 1:
		c.Min, c.Max = 1, math.MaxInt32
	default:
		c.Min = int32(rapid.IntRange(0, 2).Draw(t, "min"))
		c.Max = c.Min + int32(rapid.IntRange(0, 2).Draw(t, "more"))
	}
	return c
}

var (
	tags    = []string{"x", "y", "z"}
	teams   = []string{"red", "blue"}
	systems = []string{"bsd", "linux"}
)

// settle checks each grant at its moment against the reference, and then that no ask waits that a node would admit.
func (w *constrainedWorld) settle(what string) {
	for _, g := range w.s.Schedule() {
		if g.Rare == nil || g.Rare.Want == nil {
			w.t.Fatalf("after %s: %v was granted without its want", what, g)
		}
		if !w.holds(g.Rare.Want.Constraint, g.App, g.Node) {
			w.t.Fatalf("after %s: %s got a container with %v on %s against %v",
				what, g.App.id, g.Rare.Want.Tags, g.Node.id, g.Rare.Want.Constraint)
		}
		w.containers = append(w.containers, placedContainer{g.App, g.Node, g.Rare.Want.Tags, g.Size})
	}
	for _, a := range w.apps {
		for _, k := range a.asks {
			for _, n := range w.nodes {
				ok := w.holds(k.want.Constraint, a, n)
				if fits := w.s.main.sizes.Fits(&k.size.V, &n.free); ok && fits && n.use == Open && !n.held {
					w.t.Fatalf("after %s: %s waits for %d with %v, which %v admits on %s",
						what, a.id, k.count, k.want.Tags, k.want.Constraint, n.id)
				}
				if (w.s.main.tags.refused(k, n) == nil) != ok {
					w.t.Fatalf("after %s: the reference says %v of %v on %s", what, ok, k.want.Constraint, n.id)
				}
			}
		}
	}
	for _, n := range w.nodes {
		count := map[string]int32{}
		for _, k := range w.containers {
			for _, tag := range k.tags {
				if k.node == n {
					count[tag]++
				}
			}
		}
		for _, k := range w.s.Tags().On(n) {
			if count[k.Tag] != k.Count {
				w.t.Fatalf("after %s: %d containers with %s on %s, counted %d", what, count[k.Tag], k.Tag, n.id, k.Count)
			}
			delete(count, k.Tag)
		}
		if len(count) > 0 {
			w.t.Fatalf("after %s: not counted on %s: %v", what, n.id, count)
		}
	}
}

// Drawn days of requests with every kind of constraint, of ends, of nodes that go, come
// back and change their rack, and of attributes that change.
func TestConstraintsHoldAndBlockNoOthers(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		spec := queues.Default()
		spec.ReservationsOff = rapid.Bool().Draw(rt, "reservations off")
		spec.Root.Children[0].UserFactor = 100
		s, err := New(&Config{
			MinAllocation: creel.NewResource(1024, 1), MaxAllocation: creel.NewResource(8192, 8), Queues: spec,
		})
		if err != nil {
			rt.Fatal(err)
		}
		w := &constrainedWorld{t: rt, s: s, attributes: map[string]string{}}
		total := amounts.Vec{Memory: 4096, VCores: 4}
		for i := range 5 {
			n := &Node{}
			s.AddNode(n, creel.NodeID{Host: fmt.Sprintf("h%d", i), Port: 1}, fmt.Sprintf("/r%d", i%2))
			s.SetTotal(n, &total)
			s.SetUse(n, Open)
			w.nodes = append(w.nodes, n)
		}
		for i := range 3 {
			a := &App{}
			s.AddApp(a, creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}, nil, nil, 0)
			a.SetTags([][]string{{"red"}, {"red", "blue"}, nil}[i])
			s.Enter(a, s.Tree().Find("default"), "u")
			s.SetOpen(a, true)
			s.Line().Activate(a)
			w.apps = append(w.apps, a)
		}
		for range 4 {
			w.wants = append(w.wants, constraints.NewWant(
				rapid.SliceOfN(rapid.SampledFrom(tags), 0, 2).Draw(rt, "tags"), w.drawConstraint(2), "", nil))
		}
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			w.settle(w.step())
		}
	})
}

func (w *constrainedWorld) step() string {
	t, s := w.t, w.s
	node := rapid.SampledFrom(w.nodes).Draw(t, "node")
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0, 1, 2:
		a := rapid.SampledFrom(w.apps).Draw(t, "app")
		want := rapid.SampledFrom(w.wants).Draw(t, "want")
		size := &s.main.sizes.Of(amounts.Vec{Memory: int64(rapid.IntRange(1, 3).Draw(t, "GiB")) * 1024, VCores: 1}).V
		count := int32(rapid.IntRange(0, 4).Draw(t, "count"))
		// A key of each want: one key with two constraints is the latest.
		r := &Request{Priority: 1, AllocationRequestID: int64(slices.Index(w.wants, want)), Count: count}
		s.Tags().Place(a, r, want, size, rapid.Bool().Draw(t, "more"))
		s.Enroll(a)
		s.Serve(a)
		return "a request"
	case 3, 4:
		if len(w.containers) > 0 {
			i := rapid.IntRange(0, len(w.containers)-1).Draw(t, "ended")
			w.end(i)
		}
		return "an end"
	case 5:
		rack := rapid.SampledFrom([]string{"/r0", "/r1"}).Draw(t, "rack")
		s.SetRack(node, rack)
		return "a new rack"
	case 6:
		if node.use == Open {
			s.SetUse(node, Off)
			for i := len(w.containers) - 1; i >= 0; i-- {
				if w.containers[i].node == node {
					w.end(i)
				}
			}
			return "a node's loss"
		}
		s.SetUse(node, Open)
		return "a node's return"
	}
	if value := rapid.SampledFrom(append(systems, "")).Draw(t, "value"); value == "" {
		delete(w.attributes, node.id.Host)
		s.Tags().SetAttributes(node.id.Host, nil)
	} else {
		w.attributes[node.id.Host] = value
		s.Tags().SetAttributes(node.id.Host, map[string]string{"rm.yarn.io/os": value})
	}
	return "another attribute"
}

func (w *constrainedWorld) end(i int) {
	k := w.containers[i]
	w.containers = slices.Delete(w.containers, i, i+1)
	w.s.Tags().Count(k.app, k.node, k.tags, -1)
	w.s.Release(k.app, k.node, k.size)
}
