// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"maps"
	"math"
	"slices"

	"github.com/creelrm/creel"
)

// App is an application to which tagged containers belong. Its pointer identifies it.
type App struct {
	ID   creel.ApplicationID
	Tags []string // application tags, for OfTagged
}

// Node is a node as constraints see it. Its serial number identifies it.
type Node struct {
	Serial            int32
	Host, Rack, Label string
}

// Tags has the tagged containers and the attributes of all nodes. The zero value is ready.
type Tags struct {
	nodes      map[int32]*tagCounts
	racks      map[string]*tagCounts
	attributes map[string]map[string]string // by host, of PREFIX/NAME
}

// tagCounts has the numbers of containers by tag, for one node or rack.
type tagCounts struct {
	all  map[string]int32
	apps map[*App]map[string]int32
}

func (k *tagCounts) add(a *App, tag string, by int32) {
	if k.all == nil {
		k.all, k.apps = map[string]int32{}, map[*App]map[string]int32{}
	}
	of := k.apps[a]
	if of == nil {
		of = map[string]int32{}
		k.apps[a] = of
	}
	for _, m := range []map[string]int32{k.all, of} {
		if m[tag] += by; m[tag] == 0 {
			delete(m, tag)
		}
	}
	if len(of) == 0 {
		delete(k.apps, a)
	}
}

// of returns the counts of a node or a rack for the caller to change. It adds missing ones.
func of[K comparable](all map[K]*tagCounts, key K) *tagCounts {
	k := all[key]
	if k == nil {
		k = &tagCounts{}
		all[key] = k
	}
	return k
}

// Count adds (by 1) or removes (by -1) a container with tags on a node.
func (t *Tags) Count(a *App, n Node, tags []string, by int32) {
	if t.nodes == nil {
		t.nodes, t.racks = map[int32]*tagCounts{}, map[string]*tagCounts{}
	}
	on, rack := of(t.nodes, n.Serial), of(t.racks, n.Rack)
	for _, tag := range tags {
		on.add(a, tag, by)
		rack.add(a, tag, by)
	}
	if len(on.all) == 0 {
		delete(t.nodes, n.Serial)
	}
	if len(rack.all) == 0 {
		delete(t.racks, n.Rack)
	}
}

// Move moves the counts of a node's containers to its new rack.
func (t *Tags) Move(n Node, to string) {
	on := t.nodes[n.Serial]
	if on == nil {
		return
	}
	for _, rack := range []struct {
		name string
		sign int32
	}{{n.Rack, -1}, {to, 1}} {
		k := of(t.racks, rack.name)
		for a, tags := range on.apps {
			for tag, count := range tags {
				k.add(a, tag, rack.sign*count)
			}
		}
		if len(k.all) == 0 {
			delete(t.racks, rack.name)
		}
	}
}

// SetAttributes sets a host's attributes, by PREFIX/NAME.
func (t *Tags) SetAttributes(host string, values map[string]string) {
	if t.attributes == nil {
		t.attributes = map[string]map[string]string{}
	}
	if t.attributes[host] = values; len(values) == 0 {
		delete(t.attributes, host)
	}
}

// TagCount is the number of containers with an allocation tag on a node.
type TagCount struct {
	Tag   string
	Count int32
}

// On returns a node's counts by tag, nil for none.
func (t *Tags) On(serial int32) (out []TagCount) {
	if k := t.nodes[serial]; k != nil {
		for _, tag := range slices.Sorted(maps.Keys(k.all)) {
			out = append(out, TagCount{tag, k.all[tag]})
		}
	}
	return out
}

// Refused returns the clause of c that excludes a node for an application, nil if c admits it. For alternatives it
// returns all of them, because none holds.
func (t *Tags) Refused(c *Constraint, a *App, n *Node) *Constraint {
	switch {
	case c == nil:
		return nil
	case c.Wrong != "":
		return c
	case c.Op == AllOf:
		for _, p := range c.Parts {
			if r := t.Refused(p, a, n); r != nil {
				return r
			}
		}
		return nil
	case c.Op == AnyOf:
		for _, p := range c.Parts {
			if t.Refused(p, a, n) == nil {
				return nil
			}
		}
		return c
	}
	for i := range c.Targets {
		if !t.meets(c, &c.Targets[i], a, n) {
			return c
		}
	}
	return nil
}

// meets reports whether one target of a clause holds on a node.
func (t *Tags) meets(c *Constraint, g *Target, a *App, n *Node) bool {
	switch g.Kind {
	case ByTag:
		// Of several tags, the rarest must reach the minimum, and the most frequent must not exceed the maximum: "in"
		// requires all of them, "not in" excludes any.
		if c.Min <= 0 && c.Max == math.MaxInt32 {
			return true
		}
		least, most := t.cardinality(g, a, n, c.Rack)
		return (c.Min <= 0 || least >= c.Min) && (c.Max == math.MaxInt32 || most <= c.Max)
	case ByPartition:
		return n.Label == first(g.Values)
	case ByAttribute:
		value, has := t.attributes[n.Host][g.Key]
		if !has {
			return c.NotEqual
		}
		return (value == first(g.Values)) != c.NotEqual
	}
	return true
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// cardinality returns the numbers of containers of the rarest and of the most frequent of a target's tags, or of all
// existing tags if it names none.
func (t *Tags) cardinality(g *Target, a *App, n *Node, rack bool) (least, most int32) {
	k := t.nodes[n.Serial]
	if rack {
		k = t.racks[n.Rack]
	}
	if k == nil {
		return 0, 0
	}
	tags := g.Values
	if len(tags) == 0 {
		for tag := range k.all {
			if k.count(g, a, tag) > 0 {
				tags = append(tags, tag)
			}
		}
	}
	for i, tag := range tags {
		c := k.count(g, a, tag)
		if i == 0 {
			least, most = c, c
		}
		least, most = min(least, c), max(most, c)
	}
	return least, most
}

// count is the number of containers with a tag, in the applications of the target's namespace.
func (k *tagCounts) count(g *Target, a *App, tag string) int32 {
	switch g.Namespace {
	case OfAll:
		return k.all[tag]
	case OfOthers:
		return k.all[tag] - k.apps[a][tag]
	case OfSelf:
		return k.apps[a][tag]
	}
	n := int32(0)
	for x, tags := range k.apps {
		if g.Namespace == OfApp && x.ID == g.App || g.Namespace == OfTagged && slices.Contains(x.Tags, g.AppTag) {
			n += tags[tag]
		}
	}
	return n
}

// Worst returns the clause that excludes the most nodes; of several, the first by its text.
func Worst(by map[*Constraint]int) *Constraint {
	var worst *Constraint
	for c, n := range by {
		if worst == nil || n > by[worst] || n == by[worst] && c.String() < worst.String() {
			worst = c
		}
	}
	return worst
}
