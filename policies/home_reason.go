// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/creelrm/creel"
)

// Limits of the members that a reason lists: listedIn candidates with their numbers (the chosen and the best others),
// and listedOut excluded members. The store has reasons for some 10,000 submissions, so their size matters in a large
// federation.
const (
	listedIn  = 8
	listedOut = 100
)

// tell writes the listed members into the reason, sorted by id. chosen is an index, -1 for none.
func (d *homeDecision) tell(r *Reason, chosen int) {
	var space [listedIn + listedOut]int
	told := space[:0]
	if len(d.code) <= listedIn {
		for i := range d.code {
			told = append(told, i)
		}
	} else {
		told = d.mostOf(chosen, told)
		for i, out := 0, 0; i < len(d.code) && out < listedOut; i++ {
			if d.code[i] != "" {
				told = append(told, i)
				out++
			}
		}
		slices.Sort(told)
	}
	r.LeftOut = len(d.code) - len(told)
	r.Candidates = make([]Candidate, len(told))
	for k, i := range told {
		c := &r.Candidates[k]
		c.Member, c.Code, c.Score = d.id(i), d.code[i], d.score[i]
		switch c.Code {
		case "", ExcludedFull, ExcludedStarting, ExcludedEntitlement: // the rule considered it
			if d.numbers != nil {
				d.numbers(i, &c.Numbers)
			}
		}
		if c.Code != "" {
			c.Excluded = d.words(i, &c.Numbers)
		}
	}
}

// mostOf appends the chosen member and the best other candidates, at most listedIn in total.
func (d *homeDecision) mostOf(chosen int, to []int) []int {
	most := listedIn
	if chosen >= 0 {
		to = append(to, chosen)
		most--
	}
	var best struct { // by falling score
		n     int
		index [listedIn]int
		score [listedIn]float64
		last  float64 // once the list is full, further members need a higher score
	}
	for _, i := range d.in {
		score := d.score[i]
		if best.n == most && score <= best.last || i == chosen {
			continue
		}
		at := min(best.n, most-1)
		for ; at > 0 && best.score[at-1] < score; at-- { // equal scores stay in order of id
			best.index[at], best.score[at] = best.index[at-1], best.score[at-1]
		}
		best.index[at], best.score[at] = i, score
		best.n = min(best.n+1, most)
		best.last = best.score[best.n-1]
	}
	return append(to, best.index[:best.n]...)
}

// words returns the reason why a member is excluded, as text.
func (d *homeDecision) words(i int, n *Numbers) string {
	m, code := d.status(i), d.code[i]
	switch code {
	case Exclusion(m.State.String()):
		return "it is " + m.State.String() + ": " + m.Reason
	case ExcludedReservation:
		return "the reservation is held by " + string(d.sub.Reserved)
	case ExcludedTooLarge, ExcludedResource, ExcludedLabel:
		label := d.label(i)
		if _, why := cannotHold(m, d.sub.Size, label, false); why != "" {
			return why
		}
		return cmp.Or(mayName(m, d.sub.Queue, label), code.Text())
	case ExcludedPlace:
		return fmt.Sprintf("the AM may run only on %s, which is elsewhere", quoted(d.sub.Places))
	case ExcludedQueue:
		return fmt.Sprintf("it has no queue %q", d.sub.Queue)
	case ExcludedEntitlement:
		return fmt.Sprintf("by the plan the queue has used its entitlement there, %.1f%% of %.1f%% of %s, "+
			"and not elsewhere", 100*n.Used, 100*n.Entitled, WholeOf(n.Label))
	}
	return code.Text()
}

// best returns the member with the greatest score, the first of equals.
func (d *homeDecision) best(of []int) int {
	best := of[0]
	for _, i := range of[1:] {
		if d.score[i] > d.score[best] {
			best = i
		}
	}
	return best
}

func (d *homeDecision) id(i int) creel.SubclusterID { return d.view.Members[i].ID }
