// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// splitRule places containers that no member has been asked for.
type splitRule interface {
	name() string // as documents write it
	// given returns the document's weights, nil if there are none.
	given() Weights
	// with returns the rule with other weights.
	with(Weights) splitRule
	// from returns the rule with a document's parameters; it ignores parameters that it does not use.
	from(w Weights, alpha float64, uamAt int64) splitRule
	// place distributes n > 0 containers over d.open and adds them to d.shares. Containers that it does not place go
	// to home.
	place(d *splitDecision, n int64, rnd *rand.Rand) (because string)
}

// splitDecision is one split in progress. Slices are parallel to reach.
type splitDecision struct {
	view    *subcluster.View
	queue   creel.QueuePath
	group   Group
	reach   []Reach
	home    int
	open    []int // members that may get containers, ascending; never empty
	shares  []int64
	hosts   []int64 // containers requested on the member's hosts
	racks   []int64 // containers requested on its racks, except racks that all members have
	rooms   []int64 // free capacity left at the open members, for balancedSplit
	worth   int64   // least number of containers that is worth a UAM in a new member
	waiting int64   // see Plan
	reasons []Candidate
}

func splitGroup(
	rule splitRule,
	view *subcluster.View,
	queue creel.QueuePath,
	g Group,
	reach []Reach,
	rnd *rand.Rand,
) (Plan, error) {
	plan := Plan{Reason: Reason{Policy: rule.name()}}
	if _, no := rule.(rejectSplit); no {
		plan.Reason.Because = "the policy of the queue rejects every ask"
		return plan, &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: fmt.Sprintf("asks of queue %q rejected", queue),
			Why:  plan.Reason.Because,
		}
	}
	d := &splitDecision{view: view, queue: queue, group: g, reach: reach, home: -1,
		worth: 1, shares: make([]int64, len(reach)), hosts: make([]int64, len(reach)), racks: make([]int64, len(reach)),
		reasons: make([]Candidate, len(reach))}
	for i, r := range reach {
		d.reasons[i].Member = r.Member
		if r.Home {
			d.home = i
		}
	}
	if d.home < 0 {
		return plan, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "no home within reach",
			Why:  "a split needs exactly one",
		}
	}
	if g.Count <= 0 {
		plan.Reason.Because = "nothing is wanted"
		return plan, nil
	}
	weights, fallback := weightsInForce(rule.given(), view)
	if fallback != "" {
		rule = rule.with(weights)
	}
	for i := range reach {
		if why := d.closed(i, weights); why != "" {
			d.reasons[i].Excluded = why
		} else {
			d.open = append(d.open, i)
		}
	}
	_, homeOnly := rule.(homeSplit)
	if code, _ := d.lacks(d.home); code != "" && (homeOnly || len(d.open) == 0) {
		if because, err := d.nowhere(code, homeOnly); because != "" {
			plan.Reason.Because, plan.Reason.Candidates, plan.Unplaced = because, d.reasons, g.Count
			return plan, err
		}
	}
	if len(d.open) == 0 {
		// Some member must get the asks. Home runs the application, so they wait there until another member is back.
		d.open = []int{d.home}
		d.reasons[d.home].Excluded = ""
	}
	d.inTurn()
	d.countLocal()
	if b, ok := rule.(balancedSplit); ok && !g.Late {
		d.worth = max(1, b.uamAt)
	}
	if b, ok := rule.(broadcastSplit); ok {
		plan.Hedged = len(d.open) > 1
		plan.Reason.Because = b.all(d)
	} else {
		plan.Reason.Because = d.sticky(rule, rnd)
	}
	plan.Reason.Because = fallback + plan.Reason.Because + d.cost()
	_, plan.Rooms = rule.(balancedSplit)
	plan.Waiting = d.waiting
	for i, n := range d.shares {
		d.reasons[i].Score = float64(n)
		if n > 0 {
			plan.Shares = append(plan.Shares, Share{Member: reach[i].Member, Count: n})
		}
	}
	plan.Reason.Candidates = d.reasons
	return plan, nil
}

// closed returns the reason why a member gets no containers of this group, "" if it may get some.
func (d *splitDecision) closed(i int, weights Weights) string {
	r := d.reach[i]
	if r.Closed {
		return "it does not answer, or refused the UAM"
	}
	if d.group.Strict && !d.hasPlace(i) {
		return "it has none of the required places"
	}
	if _, why := d.lacks(i); why != "" {
		return why
	}
	if r.Home {
		return "" // the application runs at home, so home may be asked regardless of the view
	}
	m, ok := d.view.Member(r.Member)
	switch {
	case weights != nil && weights.of(r.Member) <= 0:
		return "the policy assigns it no weight"
	case !ok:
		return "it is not in the view"
	case !m.State.Alive():
		return "it is " + m.State.String() + ": " + m.Reason
	case m.State != subcluster.StateActive:
		return "it is " + m.State.String() + ", and not home"
	}
	if d.lacksQueue(m) {
		return fmt.Sprintf("it has no queue %q", d.queue)
	}
	_, why := cannotHold(m, d.group.Size, d.label(i), true)
	return why
}

// lacksQueue reports whether a member lacks the queue; federationFacts.lacksQueue does the same for homes.
func (d *splitDecision) lacksQueue(m *subcluster.Status) bool {
	return missesQueue(m, d.queue) &&
		slices.ContainsFunc(d.view.Members, func(m subcluster.Status) bool { return m.QueueOn(d.queue, "") != nil })
}

// inTurn closes the members where the asks have waited for long. It applies if only certain places are accepted and
// no member is known to have one: any member may have one, so each gets a turn.
func (d *splitDecision) inTurn() {
	if !d.group.Strict || len(d.group.Places) == 0 || slices.ContainsFunc(d.group.Places, func(p Place) bool {
		return !p.Strict && len(p.Members) > 0
	}) {
		return
	}
	left := slices.DeleteFunc(slices.Clone(d.open), func(i int) bool { return d.reach[i].Stuck })
	if len(left) == 0 || len(left) == len(d.open) {
		return
	}
	for _, i := range d.open {
		if d.reach[i].Stuck {
			d.reasons[i].Excluded = "the asks waited there for long, and no member is known to have the required places"
		}
	}
	d.open = left
}

// tells reports whether a member publishes its hosts.
func (d *splitDecision) tells(i int) bool {
	m, ok := d.view.Member(d.reach[i].Member)
	return ok && m.Load.Nodes != ""
}

// countLocal counts the containers requested on each member's hosts, and on its racks. A host and its rack both count
// the same containers. A rack that all members have, mostly /default-rack, is ignored. If no other place is accepted,
// a member in which the group has waited too long counts only while no other member has the place.
func (d *splitDecision) countLocal() {
	for _, p := range d.group.Places {
		turn := d.group.Strict && slices.ContainsFunc(d.open, func(i int) bool {
			return !d.reach[i].Stuck && slices.Contains(p.Members, d.reach[i].Member)
		})
		of := d.hosts
		if isRack(p.Name) {
			if of = d.racks; d.everywhere(p.Members) {
				continue
			}
		}
		for i, r := range d.reach {
			if slices.Contains(p.Members, r.Member) && !(turn && r.Stuck) {
				of[i] += p.Count
			}
		}
	}
}

// worthwhile returns the open members whose places count: not Stuck, unless the group is strict.
func (d *splitDecision) worthwhile() []int {
	return slices.DeleteFunc(slices.Clone(d.open), func(i int) bool { return !d.group.Strict && d.reach[i].Stuck })
}

func isRack(name string) bool { return len(name) > 0 && name[0] == '/' }

func (d *splitDecision) everywhere(members []creel.SubclusterID) bool {
	return !slices.ContainsFunc(d.reach, func(r Reach) bool { return !slices.Contains(members, r.Member) })
}

// hasPlace reports whether the member has one of the group's accepted places, or no member is known to have any. If
// only hosts are accepted and none is known, a member with one of their racks may have them. So may a member that
// does not publish its hosts.
func (d *splitDecision) hasPlace(i int) bool {
	for _, strict := range []bool{false, true} {
		known := false
		for _, p := range d.group.Places {
			if p.Strict != strict {
				continue
			}
			if slices.Contains(p.Members, d.reach[i].Member) {
				return true
			}
			known = known || len(p.Members) > 0
		}
		if known {
			return strict && !d.tells(i)
		}
	}
	return true
}

// localAt returns the number of the group's containers requested on places of a member.
func (d *splitDecision) localAt(i int) int64 { return max(d.hosts[i], d.racks[i]) }

// sticky moves as few asks as possible. It places only new asks, asks of a member now closed, and asks requested on
// places of other members. Excess asks are withdrawn, first the asks that are not at their places.
func (d *splitDecision) sticky(rule splitRule, rnd *rand.Rand) string {
	var kept int64
	for _, h := range d.group.Held {
		i := slices.IndexFunc(d.reach, func(r Reach) bool { return r.Member == h.Member })
		if i < 0 || !slices.Contains(d.open, i) {
			continue
		}
		if _, home := rule.(homeSplit); home && i != d.home {
			continue
		}
		d.shares[i] = max(h.Count, 0)
		kept += d.shares[i]
	}
	var parts []string
	if more := kept - d.group.Count; more > 0 {
		parts = append(parts, "fewer are wanted: taken back "+d.takeBack(more))
		kept = d.group.Count
	}
	if usesPlaces(rule) {
		if moved := d.toPlaces(); moved > 0 {
			parts = append(parts, fmt.Sprintf("%d move to their places", moved))
		}
	}
	switch {
	case kept < d.group.Count:
		n := d.group.Count - kept
		if _, home := rule.(homeSplit); !home {
			placed, text := d.toShortQueues(n, rnd)
			if n -= placed; placed > 0 {
				parts = append(parts, text)
			}
		}
		if n > 0 {
			parts = append(parts, rule.place(d, n, rnd))
		}
		if left := d.group.Count - sum(d.shares, nil); left > 0 {
			d.shares[d.rest()] += left
		}
	case parts == nil:
		return "members keep their asks"
	}
	return strings.Join(parts, "; ")
}

// nearest returns the number of containers requested on hosts of each member, or on its racks if no host is known.
func (d *splitDecision) nearest() []int64 {
	if sum(d.hosts, nil) == 0 {
		return d.racks
	}
	return d.hosts
}

// astray returns for each member the number of its asks beyond the containers requested on its places.
func (d *splitDecision) astray() (each []int64) {
	wanted := d.nearest()
	each = make([]int64, len(d.shares))
	for i, n := range d.shares {
		each[i] = max(0, n-wanted[i])
	}
	return each
}

// takeBack lowers the members' asks by n in proportion, first the asks that are astray. It returns a text about that.
func (d *splitDecision) takeBack(n int64) string {
	astray := d.astray()
	first := min(n, sum(astray, nil))
	for _, t := range []struct {
		n  int64
		of []int64
	}{{first, astray}, {n - first, d.shares}} {
		weights := make([]float64, len(t.of))
		for i, n := range t.of {
			weights[i] = float64(n)
		}
		for i, less := range apportion(t.n, weights, slices.Clone(t.of)) {
			d.shares[i] -= less
		}
	}
	if len(d.group.Places) > 0 {
		return "in proportion, first those not at their places"
	}
	return "in proportion"
}

// toPlaces moves astray asks to members that have their places and free capacity. If no other place is accepted, it
// moves all of them. It returns the number moved.
func (d *splitDecision) toPlaces() int64 {
	n := sum(d.astray(), nil)
	if n == 0 || len(d.group.Places) == 0 {
		return 0
	}
	held := slices.Clone(d.shares)
	moved := d.placeOn(d.nearest(), n, false)
	if d.group.Strict {
		moved += d.placeOn(d.nearest(), n-moved, true)
	}
	more := d.shares
	for i := range more {
		more[i] -= held[i]
	}
	d.shares = held
	d.takeBack(moved)
	for i := range more {
		d.shares[i] += more[i]
	}
	return moved
}

// cost returns a text with the members in which the group needs a new UAM, "" if there are none.
func (d *splitDecision) cost() string {
	var at []string
	for i, r := range d.reach {
		if d.shares[i] > 0 && i != d.home && !r.UAM {
			at = append(at, string(r.Member))
		}
	}
	if at == nil {
		return ""
	}
	return "; at the cost of a UAM in " + some(at)
}

// rest returns the member for the containers that a rule did not place. It is home if home is open, else a member
// where the application already is, else the largest member.
func (d *splitDecision) rest() int {
	if slices.Contains(d.open, d.home) {
		return d.home
	}
	return slices.MaxFunc(d.open, func(i, j int) int {
		return cmp.Or(cmp.Compare(btoi(d.reach[i].UAM), btoi(d.reach[j].UAM)), cmp.Compare(d.size(i), d.size(j)))
	})
}

// room returns the number of the group's containers that the member could start now besides the containers already
// asked for.
func (d *splitDecision) room(i int) int64 {
	r := d.reach[i]
	free := r.Headroom
	m, ok := d.view.Member(r.Member)
	label := d.label(i)
	switch {
	case label != "" && ok && m.Load.Labels.Known:
		// A headroom is for nodes without a label, or the sum of several partitions.
		f, pending, _, _ := allRoom(m, m.QueueOn(d.queue, label), label)
		if !r.Home {
			f = counting(d.view, m, label, f)
		}
		if free = f.Sub(pending); r.Stuck {
			free = creel.Resource{}
		}
	case !r.Known && !ok:
		return 0
	case !r.Known:
		f, pending, _, _ := room(d.view, m, m.QueueOn(d.queue, label), label)
		free = f.Sub(pending)
	default:
		if r.Summed && ok && label == "" && m.Load.Labels.Known {
			f, pending, _, _ := allRoom(m, m.QueueOn(d.queue, label), label)
			free = free.Min(f.Sub(pending))
		}
		if ok && label == "" && !r.Home {
			free = counting(d.view, m, label, free)
		}
	}
	n := Fitting(free, d.group.Size, d.memoryOnly(i))
	lately := ""
	switch {
	case r.Delivers:
		lately = ", recent grants"
	case r.Unproven:
		lately = ", no grant so far"
	}
	d.reasons[i].Numbers = words("room for %d, %d pending, %d local%s", n, r.Pending, d.localAt(i), lately)
	return max(0, n-r.Pending)
}

// memoryOnly reports whether the member grants containers by memory alone. It uses the member's answers to this
// application, or else its reports.
func (d *splitDecision) memoryOnly(i int) bool {
	if r := &d.reach[i]; r.Known {
		return r.MemoryOnly
	}
	m, ok := d.view.Member(d.reach[i].Member)
	return ok && !m.Load.ComparesCores()
}

// Fitting returns the number of containers of a size that fit into free resources. memoryOnly: the member's scheduler
// does not compare cores, and the headroom's cores mean nothing. Otherwise no container fits if no cores are free:
// the member, the queue or the user has none left.
func Fitting(free, size creel.Resource, memoryOnly bool) int64 {
	n := int64(math.MaxInt32)
	if size.MemoryMB > 0 {
		n = min(n, free.MemoryMB/size.MemoryMB)
	}
	if size.VCores > 0 && !memoryOnly {
		n = min(n, free.VCores/size.VCores)
	}
	for _, a := range size.Others {
		if a.Value > 0 {
			n = min(n, free.Get(a.Name)/a.Value)
		}
	}
	return max(n, 0)
}

func sum(of []int64, only []int) (n int64) {
	for i, v := range of {
		if only == nil || slices.Contains(only, i) {
			n += v
		}
	}
	return n
}

// apportion divides n by weights, rounded by largest remainder (Hamilton); of equal remainders the first wins. If
// caps is not nil, no part exceeds its cap. The parts sum to n unless caps or zero weights prevent it.
func apportion(n int64, weights []float64, caps []int64) []int64 {
	out := make([]int64, len(weights))
	for n > 0 {
		var total float64
		for i, w := range weights {
			if w > 0 && (caps == nil || out[i] < caps[i]) {
				total += w
			}
		}
		if total <= 0 || math.IsInf(total, 1) {
			return out
		}
		type part struct {
			i    int
			frac float64
		}
		var parts []part
		given := int64(0)
		for i, w := range weights {
			if w <= 0 || caps != nil && out[i] >= caps[i] {
				continue
			}
			exact := float64(n) * w / total
			whole := int64(exact)
			if caps != nil {
				whole = min(whole, caps[i]-out[i])
			}
			whole = min(whole, n-given)
			out[i] += whole
			given += whole
			if caps == nil || out[i] < caps[i] {
				parts = append(parts, part{i, exact - math.Floor(exact)})
			}
		}
		n -= given
		// If no cap was reached, fewer are left than there are members: each goes to the next by remainder. Otherwise
		// another round divides them among members below their caps.
		slices.SortStableFunc(parts, func(a, b part) int {
			switch {
			case a.frac > b.frac:
				return -1
			case a.frac < b.frac:
				return 1
			}
			return 0
		})
		if n <= int64(len(parts)) {
			for _, p := range parts[:n] {
				out[p.i]++
			}
			return out
		}
		if given == 0 && len(parts) == 0 {
			return out
		}
		if given == 0 { // impossible with finite weights; prevents an endless loop
			out[parts[0].i]++
			n--
		}
	}
	return out
}

func usesPlaces(rule splitRule) bool {
	switch rule.(type) {
	case localitySplit, balancedSplit:
		return true
	}
	return false
}
