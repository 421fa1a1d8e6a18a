// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// facts has the data about a member that is common to all submissions to a queue with a label. Thousands of
// submissions use the same view. So data that does not depend on the submission is computed once (factsOf), and the
// choice of a home compares a few numbers of each member.
type facts struct {
	net    creel.Resource // free less pending
	most   amount         // largest container there
	label  string         // of the AM there
	lacks  Exclusion      // set if the member lacks the label, so that no container fits
	misses bool           // the member reports queues, but not this one
	barred bool           // asks in the queue may not name the label there (mayName)
	nodes  bool           // the member has nodes (hasNodes)
	empty  bool           // the member reports that it has none
}

// amount has the two types that every member has: memory in MB, and cores.
type amount struct{ memory, cores int64 }

// roomFacts are the facts behind scores. Each submission reads them for every member, so they are contiguous in
// memory.
type roomFacts struct {
	net   amount // free less pending
	size  amount // of the whole
	typed bool   // there are further types: see facts.net
	slow  bool   // the member is in slow start by the plan
}

// federationFacts are the facts of all members of a view, parallel to them.
type federationFacts struct {
	of      []facts
	rooms   []roomFacts
	numbers []Numbers   // the numbers behind a score that come from the view
	states  []Exclusion // states of the members that are not active
	active  []int       // indices of the active members, ascending
	listed  bool        // some member reports the queue
	empties bool        // some active member reports that it has no nodes

	// About the active members:
	size  amount // total
	least amount // largest container that fits in each of them
	equal bool   // for submissions without further types, only the size can exclude a member
}

// factsOf returns the facts for a queue and the label that a submission names. They are computed once per view.
func factsOf(view *subcluster.View, q creel.QueuePath, label string) *federationFacts {
	if view == nil {
		return &federationFacts{}
	}
	return view.Derived(subcluster.QueueOn{Queue: q, Label: label}, func() any {
		return findFacts(view, q, label)
	}).(*federationFacts)
}

// findFacts is factsOf without the cache.
func findFacts(view *subcluster.View, q creel.QueuePath, label string) *federationFacts {
	n := len(view.Members)
	all := &federationFacts{
		of: make([]facts, n), rooms: make([]roomFacts, n), numbers: make([]Numbers, n), states: make([]Exclusion, n),
	}
	for i := range view.Members {
		m, f, r := &view.Members[i], &all.of[i], &all.rooms[i]
		var load *subcluster.QueueLoad
		if q != "" {
			load = m.QueueOn(q, "")
		}
		f.misses = missesQueue(m, q)
		all.listed = all.listed || load != nil
		f.label = homeLabel(m, q, label)
		if f.label != "" {
			load = m.QueueOn(q, f.label)
		}
		if m.State != subcluster.StateActive {
			all.states[i] = Exclusion(m.State.String())
		} else {
			all.active = append(all.active, i)
		}
		f.lacks, f.most = holdsAtMost(m, f.label)
		f.barred = mayName(m, q, f.label) != ""
		f.nodes = hasNodes(m)
		f.empty = !f.nodes && m.Load.Labels.Known // without labels it may have reported nothing yet

		n := &all.numbers[i]
		var size creel.Resource
		n.Free, n.Pending, size, n.Of = room(view, m, load, f.label)
		f.net = n.Free.Sub(n.Pending)
		r.net, r.size = amount{f.net.MemoryMB, f.net.VCores}, amount{size.MemoryMB, size.VCores}
		r.typed = len(f.net.Others) > 0
		if n.Of == "label" {
			n.Label = f.label
		}
		if counts := view.Plan.In(f.label).Counts(m.ID); counts < 1 {
			r.slow, n.Starting = true, counts
		}
	}
	all.sum()
	return all
}

// sum computes the totals over all active members.
func (k *federationFacts) sum() {
	k.size, k.equal, k.least = k.sizeOf(k.active), true, amount{math.MaxInt64, math.MaxInt64}
	for _, i := range k.active {
		f := &k.of[i]
		k.equal = k.equal && f.lacks == "" && !f.barred && !k.lacksQueue(f)
		k.empties = k.empties || f.empty
		k.least = amount{min(k.least.memory, f.most.memory), min(k.least.cores, f.most.cores)}
	}
}

// sizeOf returns the total size of members.
func (k *federationFacts) sizeOf(members []int) amount {
	var sum creel.Resource
	for _, i := range members {
		sum = sum.Add(creel.Resource{MemoryMB: k.rooms[i].size.memory, VCores: k.rooms[i].size.cores})
	}
	return amount{sum.MemoryMB, sum.VCores}
}

// lacksQueue reports whether a member lacks the queue. If no member reports the queue, it may come from placement
// rules, and excludes no member.
func (k *federationFacts) lacksQueue(f *facts) bool { return k.listed && f.misses }

// missesQueue reports whether a member reports queues, but neither this queue nor a parent that would create it.
func missesQueue(m *subcluster.Status, q creel.QueuePath) bool {
	return len(m.Load.Queues) > 0 && !m.HasQueue(q)
}

// all reports whether every active member could be the home of an AM of a size.
func (k *federationFacts) all(size *creel.Resource) bool {
	return k.equal && len(size.Others) == 0 && size.MemoryMB <= k.least.memory && size.VCores <= k.least.cores
}

// sizeOfIn returns the total size of the members that are not excluded.
func (d *homeDecision) sizeOfIn() amount {
	if len(d.in) == len(d.known.active) {
		return d.known.size
	}
	return d.known.sizeOf(d.in)
}

// homeLabel returns the label of an AM's nodes at a member. label is the one that the AM names, or "".
func homeLabel(m *subcluster.Status, q creel.QueuePath, label string) string {
	if label == "" && m.Load.Labels.AMs != "" {
		return m.Load.Labels.AMs
	}
	return askLabel(m, q, label, false)
}

// holdsAtMost returns the largest container of memory and cores that a member can ever run with a label, or the
// reason why it can run none. It agrees with cannotHold for every such size.
func holdsAtMost(m *subcluster.Status, label string) (lacks Exclusion, most amount) {
	if lacks, _ = cannotHold(m, creel.Resource{}, label, false); lacks != "" {
		return lacks, most
	}
	var total creel.Resource
	if label == "" {
		total = m.Load.Metrics.Total()
	} else if p := m.Load.Labels.Find(label); p != nil && m.Load.Labels.Known {
		total = p.Total
	}
	if total.MemoryMB == 0 && total.VCores == 0 { // the size is unknown
		return "", amount{math.MaxInt64, math.MaxInt64}
	}
	return "", amount{total.MemoryMB, total.VCores}
}

// holds is cannotHold for the submission at a member, without the text.
func (d *homeDecision) holds(i int) Exclusion {
	f := &d.facts[i]
	switch size := &d.sub.Size; {
	case len(size.Others) > 0:
		code, _ := cannotHold(d.status(i), *size, f.label, false)
		return code
	case f.lacks != "":
		return f.lacks
	case size.MemoryMB > f.most.memory || size.VCores > f.most.cores:
		return ExcludedTooLarge
	}
	return ""
}
