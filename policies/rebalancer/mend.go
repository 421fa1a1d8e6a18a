// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// QueueConf is the configuration of a member's CapacityScheduler: properties by their full names, as in
// /ws/v1/cluster/scheduler-conf.
type QueueConf map[string]string

const capacityPrefix = "yarn.scheduler.capacity."

// QueueChange is a planned change of one setting of a queue in a member's configuration.
type QueueChange struct {
	Queue creel.QueuePath `json:"queue"`
	Key   string          `json:"key"`           // as in update-queue: "capacity"
	Was   string          `json:"was,omitempty"` // "" for none
	Is    string          `json:"is"`
	Add   bool            `json:"add,omitempty"` // the queue does not exist yet
	// Remove: the queue is removed; Key is "". Only an undone addition has it.
	Remove bool   `json:"remove,omitempty"`
	Why    string `json:"why"`
}

// MemberMend has the changes that bring a member's queues to the document, and notes about the differences that
// remain.
type MemberMend struct {
	Member  creel.SubclusterID `json:"member"`
	Changes []QueueChange      `json:"changes,omitempty"`
	Notes   []string           `json:"notes,omitempty"`
}

// driftBand is the part of a federation, or of a member, by which amounts may differ.
const driftBand = 0.005

// drifts reports whether a queue's guarantee by the members' files differs from the document's.
func drifts(files, guarantee, total creel.Resource) bool {
	return math.Abs(Share(files, total)-Share(guarantee, total)) > driftBand
}

// Mend returns the changes that bring the members' queues to the tree. It adds the tree's queues that a member lacks,
// and corrects guarantees that do not sum to the tree's and maxima that differ from the tree's. confs has the
// configurations of the members that can be changed; other members are left out.
//
// If guarantees do not sum to the tree's, or a member lacks the queue, every member gets the same part: the tree's
// guarantee as a part of the federation. If siblings must sum to all of their parent (percentages), queues that the
// tree does not name shrink in proportion. Each queue keeps its configured unit: percent, weight, or amounts.
//
// Nodes of each label are compared in the same way, as if they were a federation (mend_labels.go). All changes of a
// member are made together.
//
// Maxima do not change in members that run Hadoop's ResourceManager. On nodes without a label the agent changes them,
// and on other nodes escrow counts the configured value.
func Mend(view *subcluster.View, t *Tree, confs map[creel.SubclusterID]QueueConf) []MemberMend {
	type pool struct {
		label string
		view  *subcluster.View
		tree  *Tree
		want  mendTargets
	}
	var pools []pool // nodes without a label first, because that pool adds queues
	for _, label := range t.Pools() {
		of, tree := view.In(label), t.In(label)
		pools = append(pools, pool{label, of, tree, mendTargetsOf(of, tree)})
	}
	var out []MemberMend
	for i := range view.Members {
		m := &view.Members[i]
		conf, ok := confs[m.ID]
		if !ok || !pools[0].want.members[m.ID] {
			continue
		}
		mend, added := MemberMend{Member: m.ID}, map[creel.QueuePath]bool{}
		if conf[subcluster.SavedSettingsName] != "" {
			mend.Notes = append(mend.Notes,
				"the capacities of its queues follow the plan now: pause plans first (creel rebalancer pause)")
			out = append(out, mend)
			continue
		}
		for _, p := range pools {
			in := &p.view.Members[i]
			x := mender{
				label: p.label, member: in, tree: p.tree, conf: conf, want: p.want, size: in.Load.Metrics.Total(),
				added: added, granted: map[creel.QueuePath]bool{}, changed: map[creel.QueuePath]bool{}, mend: mend,
			}
			switch {
			case x.size.MemoryMB <= 0 && p.label == "":
				x.note("it has no nodes now: nothing is compared")
			case x.size.MemoryMB <= 0 && len(in.Load.Queues) == 0: // it never had any
			case x.size.MemoryMB <= 0:
				x.note("it has no such nodes now: nothing is compared")
			case !p.want.members[m.ID]:
				x.note("it does not report its queues there: nothing is compared")
			default:
				x.run()
			}
			mend = x.mend
		}
		out = append(out, mend)
	}
	return out
}

// mendTargets is the members' target values of a queue together.
type mendTargets struct {
	goal    map[creel.QueuePath]float64 // of the federation, and so of each member
	drifted map[creel.QueuePath]bool    // queues with descendants that differ from the tree
	members map[creel.SubclusterID]bool // members that report queues
}

func mendTargetsOf(view *subcluster.View, t *Tree) mendTargets {
	total := Total(view)
	out := mendTargets{map[creel.QueuePath]float64{}, map[creel.QueuePath]bool{}, map[creel.SubclusterID]bool{}}
	var members []*subcluster.Status
	for i := range view.Members {
		m := &view.Members[i]
		if len(m.Load.Queues) > 0 && m.State != subcluster.StateDeregistered && m.State != subcluster.StateLost {
			members = append(members, m)
			out.members[m.ID] = true
		}
	}
	for i := range t.Queues {
		q := &t.Queues[i]
		sum, all := creel.Resource{}, true
		for _, m := range members {
			load := m.Load.Find(q.Path)
			if all = all && load != nil; load != nil {
				sum = sum.Add(load.Capacity)
			}
		}
		if !q.Guarantee.IsZero() {
			out.goal[q.Path] = Share(q.Guarantee, total)
		}
		if !all || !q.Guarantee.IsZero() && drifts(sum, q.Guarantee, total) {
			out.drifted[q.Path.Parent()] = true
		}
	}
	for i := range t.Queues { // changes to a queue above change their values
		above := t.Queues[i].Path.Parent()
		for up := above; up != creel.RootQueue && !out.drifted[above]; up = up.Parent() {
			if out.drifted[up.Parent()] {
				out.drifted[above] = true
			}
		}
	}
	return out
}

// mender mends the queues of one member on the nodes of one label, or without a label.
type mender struct {
	label  string
	member *subcluster.Status // as if it had no other nodes
	tree   *Tree
	conf   QueueConf
	want   mendTargets
	size   creel.Resource
	mend   MemberMend
	added  map[creel.QueuePath]bool // queues to be added, with nodes without a label
	// granted has the queues that get the label; changed has the queues whose capacity changes.
	granted, changed map[creel.QueuePath]bool
}

func (x *mender) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if x.label != "" {
		text = "on nodes of label " + x.label + ": " + text
	}
	x.mend.Notes = append(x.mend.Notes, text)
}

func (x *mender) get(path creel.QueuePath, key string) string {
	return strings.TrimSpace(x.conf[capacityPrefix+string(path)+"."+key])
}

// children returns the configured children and the children to be added.
func (x *mender) children(path creel.QueuePath) (out []creel.QueuePath) {
	for _, name := range strings.Split(x.get(path, "queues"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, path+"."+creel.QueuePath(name))
		}
	}
	for added := range x.added {
		if added.Parent() == path {
			out = append(out, added)
		}
	}
	slices.Sort(out)
	return out
}

func (x *mender) has(path creel.QueuePath) bool {
	return path == creel.RootQueue || slices.Contains(x.children(path.Parent()), path)
}

func (x *mender) run() {
	if x.label != "" {
		x.grant()
		x.level(creel.RootQueue, x.size, x.size, percentUnit)
		return
	}
	for i := range x.tree.Queues { // parents come before their children
		path := x.tree.Queues[i].Path
		above := path.Parent()
		switch {
		case x.has(path):
		case !x.has(above):
			x.note("%s is not added: %s is neither there nor in the document", path, above)
		case above != creel.RootQueue && !x.added[above] && len(x.children(above)) == 0:
			x.note("%s is not added: %s is a leaf queue here, with applications of its own", path, above)
		default:
			x.added[path] = true
		}
	}
	x.level(creel.RootQueue, x.size, x.size, percentUnit)
}

// child is one of the children of a queue.
type child struct {
	path  creel.QueuePath
	value float64 // percent or weight, as configured
	named bool    // the tree sets its guarantee
	share float64 // of its parent, the target if named
	is    float64 // of its parent, after the mend
}

// level brings the children of a queue to the tree, and then their children. has and most are the queue's guarantee
// and maximum in this member. If all children are new, their capacities use the unit of the parent.
func (x *mender) level(above creel.QueuePath, has, most creel.Resource, kind unitOf) {
	paths := x.children(above)
	if len(paths) == 0 {
		return
	}
	known := false
	list := make([]child, 0, len(paths))
	for _, path := range paths {
		if !x.accesses(path) {
			continue
		}
		c := child{path: path}
		if !x.added[path] {
			u, v := x.unitOf(path)
			if u == weightUnit && v <= leastWeight {
				v = 0
			}
			// A queue with zero of a label is compatible with any unit of its siblings.
			if c.value = v; x.label == "" || u != percentUnit || v != 0 {
				if known && u != kind || u == mixedUnit {
					x.note("the queues below %s are left as they are: their capacities are in several units", above)
					return
				}
				kind, known = u, true
			}
		}
		goal, ok := x.want.goal[path]
		switch {
		case ok && !x.usable(path):
			x.note("%s gets nothing: none of the queues below it may use these nodes", path)
		case ok:
			c.named, c.share = true, min(1, goal/max(1e-9, Share(has, x.size)))
		case x.added[path] && x.label == "":
			c.named = true // with zero
		}
		list = append(list, c)
	}
	if x.label != "" && !known {
		kind = x.unitWithoutLabel(above, kind)
	}
	switch {
	case len(list) == 0:
		return
	case kind == amountUnit:
		x.amounts(list, above, has, most)
		return
	case x.label != "" && Share(has, x.size) < 1e-9:
		x.nothing(list, above, kind)
		return
	}
	for i, written := range x.written(list, above, has, kind) {
		c := &list[i]
		if now := x.own(c.path, "capacity"); written != now {
			why := "the document guarantees it this"
			if !c.named {
				why = "it shrinks for its siblings, which the document names"
			}
			x.change(c.path, x.key("capacity"), now, written, why)
		}
		least := 0.0 // Hadoop rejects a maximum below the capacity, as both are written
		if kind == percentUnit {
			_, v := unit(written)
			least = v / 100
		}
		under := x.maximum(c.path, c.is*Share(has, x.size), least, most)
		x.level(c.path, partOf(has, c.is), under, kind)
	}
}

// written returns the new capacities of children, as percentages or weights. If the present ones agree with the tree,
// it returns these.
func (x *mender) written(list []child, above creel.QueuePath, has creel.Resource, kind unitOf) []string {
	now, is := make([]string, len(list)), make([]float64, len(list))
	for i := range list {
		now[i], is[i] = x.own(list[i].path, "capacity"), x.shareNow(list, &list[i], kind)
	}
	stay := func() []string {
		for i := range list {
			if list[i].is = is[i]; x.added[list[i].path] && x.label == "" {
				now[i] = map[unitOf]string{percentUnit: "0", weightUnit: weightText(0)}[kind]
			}
		}
		return now
	}
	// A queue that gets nodes of a label must distribute them if no child has any.
	fresh := x.label != "" && !slices.ContainsFunc(list, func(c child) bool { return c.value > 0 })
	drifted := fresh && x.changed[above]
	if !fresh || slices.ContainsFunc(list, func(c child) bool { return c.share > 0 }) {
		x.shares(list, above)
	} else if drifted = drifted && x.sharesWithoutLabel(list); !drifted {
		return stay()
	}
	for i := range list {
		c := &list[i]
		// In whole amounts, as members report them.
		off := Share(partOf(has, is[i]), x.size) - c.share*Share(has, x.size)
		drifted = drifted || x.added[c.path] && x.label == "" ||
			x.want.drifted[above] && c.named && math.Abs(off) > driftBand-1e-9 // at its edge too
	}
	if !drifted {
		return stay()
	}
	out := texts(list, kind)
	for i := range list {
		c := &list[i]
		if x.heldBelow(c.path, out[i], kind) {
			x.note("the queues below %s are left as they are: %s would be guaranteed %s, above its maximum-capacity, "+
				"which is a part of the federation's maximum: raise that first", above, c.path, out[i])
			return stay()
		}
		none := now[i] == "" && c.is == 0 && x.label != ""
		if none || sameNumber(out[i], now[i]) && (!x.added[c.path] || x.label != "") {
			out[i] = now[i]
		}
	}
	return out
}

// heldBelow reports whether a queue's maximum-capacity is below a capacity and a mend must not raise it, since it is
// a part of the federation's maximum.
func (x *mender) heldBelow(path creel.QueuePath, capacity string, kind unitOf) bool {
	q := x.tree.Find(path)
	if kind != percentUnit || !x.member.ByAgent() || q == nil || !q.Bounded() {
		return false
	}
	text := x.own(path, "maximum-capacity")
	_, v := unit(capacity)
	u, most := unit(text)
	return text != "" && u == percentUnit && most >= 0 && most < v-1e-9
}

// shareNow returns a child's share of its parent by the configuration.
func (x *mender) shareNow(list []child, c *child, kind unitOf) float64 {
	if x.added[c.path] {
		return 0
	}
	if kind == percentUnit {
		return c.value / 100
	}
	sum := 0.0
	for i := range list {
		sum += list[i].value
	}
	if sum == 0 {
		return 0
	}
	return c.value / sum
}

// shares assigns each named child its share, and distributes the rest of the parent to the other children in
// proportion. The shares sum to 1.
func (x *mender) shares(list []child, above creel.QueuePath) {
	named, others := 0.0, 0.0
	for i := range list {
		if c := &list[i]; c.named {
			named += c.share
		} else {
			others += c.value
		}
	}
	scale := 1.0
	if rest := 1 - named; named > 0 && (rest < 0 || rest > 1e-9 && others == 0) {
		scale = 1 / named
		if math.Abs(rest) > driftBand {
			x.note("the document guarantees the queues below %s %.1f%% of it here; capacities sum to 100%%, so each "+
				"has its part of that", above, 100*named)
		}
	}
	for i := range list {
		switch c := &list[i]; {
		case c.named && named == 0 && others == 0:
			c.is = 1 / float64(len(list))
		case c.named:
			c.is = c.share * scale
		case others > 0:
			c.is = max(0, 1-named*scale) * c.value / others
		}
	}
}

// maximum brings a queue's maximum in this member to the tree's value, and returns the most that the queue may use
// after that. least is its guarantee as a part of the member. leastWritten, from 0 to 1, is the least
// maximum-capacity that Hadoop accepts.
func (x *mender) maximum(path creel.QueuePath, least, leastWritten float64, most creel.Resource) creel.Resource {
	is := 1.0
	text := x.own(path, "maximum-capacity")
	u, v := unit(text)
	switch {
	case text != "" && u == amountUnit:
		return amountsIn(text, most).Min(most)
	case text != "" && v >= 0 && u == percentUnit:
		is = min(1, v/100)
	}
	want, why := is, "the document's maximum allows it this here"
	if q := x.tree.Find(path); q != nil && q.Bounded() && !x.member.ByAgent() {
		want = Share(q.Maximum.Min(most), most)
		if q.Maximum.VCores >= Unbounded { // only memory binds
			want = min(1, float64(q.Maximum.MemoryMB)/float64(max(1, most.MemoryMB)))
		}
		want = min(1, max(want, least/max(1e-9, Share(most, x.size))))
	}
	low := is < leastWritten-1e-9
	if want < leastWritten {
		want, why = leastWritten, "it is not below the queue's guarantee"
	}
	if math.Abs(want-is) <= driftBand && !low {
		return partOf(most, is)
	}
	percent := min(100, math.Ceil(want*10_000-1e-6)/100)
	x.change(path, x.key("maximum-capacity"), text, strconv.FormatFloat(percent, 'f', -1, 64), why)
	return partOf(most, percent/100) // as written, since the next mend computes the queues below from that value
}

// amounts does the work of level for children whose capacities are amounts: their siblings need not shrink.
func (x *mender) amounts(list []child, above creel.QueuePath, has, most creel.Resource) {
	to, sum, far := make([]creel.Resource, len(list)), creel.Resource{}, false
	for i := range list {
		c := &list[i]
		to[i] = amountsIn(x.own(c.path, "capacity"), creel.Resource{})
		if want := partBelow(x.size, x.want.goal[c.path]); c.named && (x.added[c.path] ||
			x.want.drifted[above] && math.Abs(Share(want, x.size)-Share(to[i], x.size)) > driftBand) {
			// In both types the part of the dominant one, which is the meaning of a percentage.
			to[i], far = want, true
		}
		sum = sum.Add(to[i])
	}
	stay := far && above != creel.RootQueue && !sum.Fits(has)
	if stay {
		x.note("the queues below %s are left as they are: in amounts they would be guaranteed %s in all, and it has %s",
			above, sum, has)
	}
	for i := range list {
		c := &list[i]
		text := x.own(c.path, "capacity")
		is := amountsIn(text, creel.Resource{})
		if !stay && !to[i].Equal(is) || x.added[c.path] && c.named {
			if is = to[i]; stay {
				is = creel.Resource{}
			}
			x.change(c.path, x.key("capacity"), text, withAmounts(text, is), "the document guarantees it this")
		}
		x.level(c.path, is, x.amountOfMaximum(c.path, is, most), amountUnit)
	}
}

// amountOfMaximum does the work of maximum for a queue whose capacity and maximum are amounts.
func (x *mender) amountOfMaximum(path creel.QueuePath, is, most creel.Resource) creel.Resource {
	under, text, low := most, x.own(path, "maximum-capacity"), false
	switch u, v := unit(text); {
	case text != "" && u == amountUnit:
		written := amountsIn(text, most)
		under, low = written.Min(most), !is.Fits(written)
	case text != "" && u == percentUnit && v >= 0:
		under = partOf(most, min(1, v/100))
		low = v < 100 // a percentage cannot be mixed with an amount
	}
	want, why := under, "it is not below the queue's guarantee"
	if low {
		want = want.Max(is)
	}
	if q := x.tree.Find(path); q != nil && q.Bounded() {
		if x.member.ByAgent() {
			if low {
				x.note("%s has a maximum-capacity that does not fit its capacity, and is a part of the federation's "+
					"maximum: raise that first", path)
			}
			return under
		}
		want, why = q.Maximum.Min(most).Max(is), "the document's maximum allows it this here"
	}
	if !low && math.Abs(Share(want, x.size)-Share(under, x.size)) <= driftBand {
		return under
	}
	x.change(path, x.key("maximum-capacity"), text, withAmounts(text, want), why)
	return want
}

func (x *mender) change(path creel.QueuePath, key, was, is, why string) {
	if was == is && !x.added[path] {
		return
	}
	x.changed[path] = x.changed[path] || key == x.key("capacity")
	x.mend.Changes = append(x.mend.Changes, QueueChange{
		Queue: path, Key: key, Was: was, Is: is, Add: x.added[path], Why: why,
	})
}
