// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// facts is what a view says of a member to all submissions to a queue with a label. Thousands
// of submissions are decided over one view: what does not depend on the submission is found
// out once (factsOf), so that the choice of a home looks at a few numbers of each member.
type facts struct {
	net    creel.Resource // free less what waits
	size   amount         // of the whole
	most   amount         // that a container can have there
	label  string         // of the AM there
	state  Exclusion      // "" of an active one
	lacks  Exclusion      // it has not that label: it can hold nothing
	listed bool           // it reports the queue
	silent bool           // it reports no queues at all
	barred bool           // asks in the queue may not name the label there (mayName)
	nodes  bool           // it has some (hasNodes)
	slow   bool           // it starts slowly by the plan
}

// amount is of the two types that every member has, memory in MB and cores.
type amount struct{ memory, cores int64 }

// federationFacts are the facts of all members of a view, parallel to them.
type federationFacts struct {
	of      []facts
	numbers []Numbers // what a score is made from, as far as the view knows it
	listed  bool      // by some member
}

// factsOf are the facts for a queue and the label that a submission names, made once for a view.
func factsOf(view *subcluster.View, q creel.QueuePath, label string) *federationFacts {
	if view == nil {
		return &federationFacts{}
	}
	return view.Derived(subcluster.QueueOn{Queue: q, Label: label}, func() any {
		return findFacts(view, q, label)
	}).(*federationFacts)
}

// findFacts is factsOf, each time anew.
func findFacts(view *subcluster.View, q creel.QueuePath, label string) *federationFacts {
	n := len(view.Members)
	all := &federationFacts{of: make([]facts, n), numbers: make([]Numbers, n)}
	for i := range view.Members {
		m, f := &view.Members[i], &all.of[i]
		var load *subcluster.QueueLoad
		if q != "" {
			load = m.QueueOn(q, "")
		}
		f.listed, f.silent = load != nil, len(m.Load.Queues) == 0
		f.label = homeLabel(m, q, label)
		if f.label != "" {
			load = m.QueueOn(q, f.label)
		}
		if m.State != subcluster.StateActive {
			f.state = Exclusion(m.State.String())
		}
		f.lacks, f.most = holdsAtMost(m, f.label)
		f.barred = mayName(m, q, f.label) != ""
		f.nodes = hasNodes(m)
		all.listed = all.listed || f.listed

		n := &all.numbers[i]
		var size creel.Resource
		n.Free, n.Pending, size, n.Of = room(view, m, load, f.label)
		f.size = amount{size.MemoryMB, size.VCores}
		f.net = n.Free.Sub(n.Pending)
		if n.Of == "label" {
			n.Label = f.label
		}
		if counts := view.Plan.Counts(m.ID); f.label == "" && counts < 1 {
			f.slow, n.Starting = true, counts
		}
	}
	return all
}

// homeLabel is the label at a member of an AM that names one, or none ("").
func homeLabel(m *subcluster.Status, q creel.QueuePath, label string) string {
	if label == "" && m.Load.Labels.AMs != "" {
		return m.Load.Labels.AMs
	}
	return askLabel(m, q, label, false)
}

// holdsAtMost is the largest container, of memory and cores alone, that a member could ever
// run with a label, or why it could run none: cannotHold of every such size.
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
	if total.MemoryMB == 0 && total.VCores == 0 { // nobody knows
		return "", amount{math.MaxInt64, math.MaxInt64}
	}
	return "", amount{total.MemoryMB, total.VCores}
}

// holds is cannotHold of the submission at a member, without the words.
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
