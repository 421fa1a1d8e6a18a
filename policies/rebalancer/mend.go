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

// QueueConf is the configuration of a member's CapacityScheduler: properties by their
// full names, as /ws/v1/cluster/scheduler-conf gives them.
type QueueConf map[string]string

const capacityPrefix = "yarn.scheduler.capacity."

// QueueChange is one setting of a queue in a member's configuration that is to change.
type QueueChange struct {
	Queue creel.QueuePath `json:"queue"`
	Key   string          `json:"key"`           // as in update-queue: "capacity"
	Was   string          `json:"was,omitempty"` // "" for none
	Is    string          `json:"is"`
	Add   bool            `json:"add,omitempty"` // the queue is not there yet
	// Remove: the queue goes; Key is "". Only an undone addition has it.
	Remove bool   `json:"remove,omitempty"`
	Why    string `json:"why"`
}

// MemberMend is what brings a member's queues to what the document says, and what
// cannot be brought there, in words.
type MemberMend struct {
	Member  creel.SubclusterID `json:"member"`
	Changes []QueueChange      `json:"changes,omitempty"`
	Notes   []string           `json:"notes,omitempty"`
}

// driftBand is the part of a federation, or of a member, by which amounts may differ.
const driftBand = 0.005

// Mend tells which settings of the members' queues bring them to what the tree says:
// its queues that a member lacks, guarantees that do not add up to the tree's, and
// maxima of members that are not what the tree's leaves them. confs are those of the
// members that can be changed; others are left out.
//
// Where guarantees do not add up, or a member lacks the queue, every member gives it the
// part of its own size that the tree gives it of the federation. Where children of a
// queue must sum to all of it (percentages), queues that the tree does not name make room
// in proportion. Each queue keeps the unit in which it
// is configured: percent, weight, or amounts.
//
// Maxima are left alone in members whose part of them is held by Hadoop's own setting:
// the agent changes that.
func Mend(view *subcluster.View, t *Tree, confs map[creel.SubclusterID]QueueConf) []MemberMend {
	want := wantedOf(view, t)
	var out []MemberMend
	for i := range view.Members {
		m := &view.Members[i]
		conf, ok := confs[m.ID]
		if !ok || !want.members[m.ID] {
			continue
		}
		x := mender{
			member: m, tree: t, conf: conf, want: want, size: m.Load.Metrics.Total(),
			mend: MemberMend{Member: m.ID}, added: map[creel.QueuePath]bool{},
		}
		if conf[subcluster.HeldName] != "" {
			x.note("the capacities of its queues follow the plan now: pause plans first (creel rebalancer pause)")
		} else if x.size.MemoryMB > 0 {
			x.run()
		} else {
			x.note("it has no nodes now: nothing is compared")
		}
		out = append(out, x.mend)
	}
	return out
}

// wanted is what the members' queues should have together.
type wanted struct {
	goal    map[creel.QueuePath]float64 // of the federation, and so of each member
	drifted map[creel.QueuePath]bool    // queues below which some do not have it
	members map[creel.SubclusterID]bool // those that tell of queues
}

func wantedOf(view *subcluster.View, t *Tree) wanted {
	total := Total(view)
	out := wanted{map[creel.QueuePath]float64{}, map[creel.QueuePath]bool{}, map[creel.SubclusterID]bool{}}
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
		sum, all := 0.0, true
		for _, m := range members {
			load := m.Load.Find(q.Path)
			if all = all && load != nil; load != nil {
				sum += Share(load.Capacity, total)
			}
		}
		goal := sum
		if !q.Guarantee.IsZero() {
			goal = Share(q.Guarantee, total)
			out.goal[q.Path] = goal
		}
		if !all || math.Abs(sum-goal) > driftBand {
			out.drifted[q.Path.Parent()] = true
		}
	}
	return out
}

// mender works on one member.
type mender struct {
	member *subcluster.Status
	tree   *Tree
	conf   QueueConf
	want   wanted
	size   creel.Resource
	mend   MemberMend
	added  map[creel.QueuePath]bool
}

func (x *mender) note(format string, args ...any) {
	x.mend.Notes = append(x.mend.Notes, fmt.Sprintf(format, args...))
}

func (x *mender) get(path creel.QueuePath, key string) string {
	return strings.TrimSpace(x.conf[capacityPrefix+string(path)+"."+key])
}

// children are those of the configuration, and those that are added.
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

// unitOf is how a queue's capacity is written.
type unitOf int

const (
	percentUnit unitOf = iota
	weightUnit
	amountUnit
	mixedUnit // type by type; not changed
)

func unit(text string) (unitOf, float64) {
	switch {
	case strings.HasPrefix(text, "["):
		for _, part := range strings.Split(strings.Trim(text, "[]"), ",") {
			if _, v, _ := strings.Cut(part, "="); strings.HasSuffix(v, "%") || strings.HasSuffix(v, "w") {
				return mixedUnit, 0
			}
		}
		return amountUnit, 0
	case strings.HasSuffix(text, "w"):
		v, err := strconv.ParseFloat(strings.TrimSuffix(text, "w"), 64)
		if err != nil {
			return mixedUnit, 0
		}
		return weightUnit, v
	case text == "":
		return percentUnit, 0
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		return mixedUnit, 0
	}
	return percentUnit, v
}

// leastWeight is the weight of a queue that has nothing: a weight is above 0.
const leastWeight = 0.001

// child is a queue on its level.
type child struct {
	path  creel.QueuePath
	value float64 // percent or weight, as configured
	named bool    // the tree says what it is guaranteed
	share float64 // of its parent that it shall have, if named
	is    float64 // of its parent, as it comes to be
}

// level brings the children of a queue to what the tree says, and then theirs. has and
// most are what the queue is guaranteed and may use in this member.
// Where all are new they are written in the unit of the queue above.
func (x *mender) level(above creel.QueuePath, has, most creel.Resource, kind unitOf) {
	paths := x.children(above)
	if len(paths) == 0 {
		return
	}
	known := false
	list := make([]child, 0, len(paths))
	drifted := false
	for _, path := range paths {
		c := child{path: path}
		if !x.added[path] {
			u, v := unit(x.get(path, "capacity"))
			if u == weightUnit && v <= leastWeight {
				v = 0
			}
			if c.value = v; known && u != kind || u == mixedUnit {
				x.note("the queues below %s are left as they are: their capacities are in several units", above)
				return
			}
			kind, known = u, true
		}
		if goal, ok := x.want.goal[path]; ok {
			c.named, c.share = true, min(1, goal/max(1e-9, Share(has, x.size)))
		} else if x.added[path] {
			c.named = true // with nothing
		}
		list = append(list, c)
	}
	if kind == amountUnit {
		x.amounts(list, above, has, most)
		return
	}
	x.shares(list, above)
	for i := range list {
		c := &list[i]
		is := x.shareNow(list, c, kind)
		drifted = drifted || x.added[c.path] ||
			x.want.drifted[above] && c.named && math.Abs(is-c.share)*Share(has, x.size) > driftBand
	}
	written := texts(list, kind)
	for i := range list {
		c := &list[i]
		now := x.get(c.path, "capacity")
		if drifted && (!sameNumber(written[i], now) || x.added[c.path]) {
			why := "the document guarantees it this"
			if !c.named {
				why = "it makes room for its neighbours, which the document names"
			}
			x.change(c.path, "capacity", now, written[i], why)
		} else if !drifted {
			c.is = x.shareNow(list, c, kind)
		}
		under := x.maximum(c.path, c.is*Share(has, x.size), most)
		x.level(c.path, partOf(has, c.is), under, kind)
	}
}

// partOf is so much of memory and cores.
func partOf(r creel.Resource, by float64) creel.Resource {
	return creel.NewResource(int64(math.Round(by*float64(r.MemoryMB))), int64(math.Round(by*float64(r.VCores))))
}

func sameNumber(a, b string) bool {
	ua, va := unit(a)
	ub, vb := unit(b)
	near := 1e-9
	if ua == weightUnit {
		near = max(va, vb) / 1000 // percentages have to sum to 100
	}
	return a == b || ua == ub && ua != amountUnit && math.Abs(va-vb) <= near && b != ""
}

// shareNow is what a child has of its parent by the configuration.
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

// shares gives those that the tree names theirs, and the rest of the parent to the
// others in proportion. The shares sum to 1.
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

// texts writes the shares in the unit of their level: percentages sum to exactly 100, and
// weights of queues that make room stay what they are.
func texts(list []child, kind unitOf) []string {
	out := make([]string, len(list))
	shares, all, others, rest := make([]float64, len(list)), 0.0, 0.0, 0.0
	for i := range list {
		shares[i] = list[i].is * 100
		if all += list[i].value; !list[i].named {
			others += list[i].value
			rest += list[i].is
		}
	}
	if kind == percentUnit {
		for i, n := range Round(shares, 0.01, nil) {
			out[i] = strconv.FormatFloat(float64(n)/100, 'f', -1, 64)
		}
		return out
	}
	if rest > 0 {
		all = others / rest
	}
	if all == 0 {
		all = 1
	}
	for i := range list {
		out[i] = strconv.FormatFloat(max(leastWeight, math.Round(list[i].is*all*1000)/1000), 'f', -1, 64) + "w"
	}
	return out
}

// maximum brings a queue's own maximum to what the tree's leaves it in this member, and
// returns what it may use then. least is its guarantee as a part of the member.
func (x *mender) maximum(path creel.QueuePath, least float64, most creel.Resource) creel.Resource {
	is := 1.0
	text := x.get(path, "maximum-capacity")
	u, v := unit(text)
	switch {
	case text != "" && u == amountUnit:
		return x.amountsIn(text, most).Min(most)
	case text != "" && v >= 0 && u == percentUnit:
		is = min(1, v/100)
	}
	q := x.tree.Find(path)
	if q == nil || !q.Bounded() || x.member.ByAgent() {
		return partOf(most, is)
	}
	want := Share(q.Maximum.Min(most), most)
	if q.Maximum.VCores >= Unbounded { // only memory binds
		want = min(1, float64(q.Maximum.MemoryMB)/float64(max(1, most.MemoryMB)))
	}
	want = min(1, max(want, least/max(1e-9, Share(most, x.size))))
	if math.Abs(want-is) <= driftBand {
		return partOf(most, is)
	}
	to := strconv.FormatFloat(min(100, math.Ceil(want*10_000)/100), 'f', -1, 64)
	x.change(path, "maximum-capacity", text, to, "the document's maximum leaves it this here")
	return partOf(most, want)
}

// amounts is level for children whose capacities are amounts: nobody has to make room.
func (x *mender) amounts(list []child, above creel.QueuePath, has, most creel.Resource) {
	for i := range list {
		c := &list[i]
		text := x.get(c.path, "capacity")
		is := x.amountsIn(text, creel.Resource{})
		if c.named {
			// In both types the part of the dominant one: that is what a percentage is.
			want := partOf(x.size, x.want.goal[c.path])
			if x.added[c.path] || x.want.drifted[above] && math.Abs(Share(want, x.size)-Share(is, x.size)) > driftBand {
				x.change(c.path, "capacity", text, withAmounts(text, want), "the document guarantees it this")
				is = want
			}
		}
		under := most
		if text := x.get(c.path, "maximum-capacity"); text != "" && !strings.HasPrefix(text, "-") {
			under = x.amountsIn(text, most).Min(most)
		}
		if q := x.tree.Find(c.path); q != nil && q.Bounded() && !x.member.ByAgent() {
			want := q.Maximum.Min(most).Max(is)
			if math.Abs(Share(want, x.size)-Share(under, x.size)) > driftBand {
				text := x.get(c.path, "maximum-capacity")
				x.change(c.path, "maximum-capacity", text, withAmounts(text, want),
					"the document's maximum leaves it this here")
				under = want
			}
		}
		x.level(c.path, is, under, amountUnit)
	}
}

// amountsIn reads "[memory=10240,vcores=12]"; types that are not named have rest's.
func (x *mender) amountsIn(text string, rest creel.Resource) creel.Resource {
	out := rest
	for _, part := range strings.Split(strings.Trim(text, "[]"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "memory", creel.MemoryName:
			out.MemoryMB = n
		case creel.VCoresName:
			out.VCores = n
		}
	}
	return out
}

// withAmounts writes memory and cores into such a text; what else it names stays.
func withAmounts(text string, r creel.Resource) string {
	out := []string{fmt.Sprintf("memory=%d", r.MemoryMB), fmt.Sprintf("vcores=%d", r.VCores)}
	for _, part := range strings.Split(strings.Trim(text, "[]"), ",") {
		switch name, _, ok := strings.Cut(strings.TrimSpace(part), "="); strings.ToLower(name) {
		case "memory", creel.MemoryName, creel.VCoresName:
		default:
			if ok {
				out = append(out, strings.TrimSpace(part))
			}
		}
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (x *mender) change(path creel.QueuePath, key, was, is, why string) {
	if was == is && !x.added[path] {
		return
	}
	x.mend.Changes = append(x.mend.Changes, QueueChange{
		Queue: path, Key: key, Was: was, Is: is, Add: x.added[path], Why: why,
	})
}

// Undo tells which changes take a mend of a member back, or why they cannot: a setting
// has been changed again since, or the change was not carried out. Queues that were added
// go, children before their parents.
func (m *MemberMend) Undo(conf QueueConf) ([]QueueChange, error) {
	var changes []QueueChange
	added := map[creel.QueuePath]bool{}
	for i := range m.Changes {
		c := &m.Changes[i]
		if c.Remove {
			return nil, &creel.Error{
				Kind: creel.ErrInvalidRequest, What: fmt.Sprintf("%s is not added to %s again", c.Queue, m.Member),
				Why: "a queue was removed when its addition was undone", Try: "creel queue mend",
			}
		}
		if now := strings.TrimSpace(conf[capacityPrefix+string(c.Queue)+"."+c.Key]); now != c.Is {
			return nil, &creel.Error{
				Kind: creel.ErrConflict,
				What: fmt.Sprintf("the queues of %s stay as they are", m.Member),
				Why: fmt.Sprintf("%s of %s is %q there, and not %q: it has been changed since, or the mend was not "+
					"carried out", c.Key, c.Queue, now, c.Is),
				Try: "see `creel queue mend --dry-run`",
			}
		}
		switch {
		case !c.Add:
			changes = append(changes, QueueChange{Queue: c.Queue, Key: c.Key, Was: c.Is, Is: c.Was, Why: "undone"})
		case !added[c.Queue]:
			added[c.Queue] = true
			changes = append(changes, QueueChange{Queue: c.Queue, Remove: true, Why: "undone"})
		}
	}
	slices.SortStableFunc(changes, func(a, b QueueChange) int {
		return strings.Compare(string(b.Queue), string(a.Queue))
	})
	return changes, nil
}
