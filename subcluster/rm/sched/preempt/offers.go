// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"slices"
	"time"
)

// candidate is a container on offer.
type candidate struct {
	Container
	budget *Budget
	choice Choice
	rank   int32 // position in the order
}

// Offers are the containers that may be taken, in the order of loss.
type Offers struct {
	r         *Round
	list      []candidate
	leastWork bool // a queue with too much loses the least work
}

// Memory is reused by the next round.
type Memory struct{ list []candidate }

// Offers begins a list of offers. Claims from it must be made before the next list with the same memory.
func (r *Round) Offers(leastWork bool, m *Memory) *Offers {
	return &Offers{r: r, leastWork: leastWork, list: m.list[:0]}
}

// Keep returns the memory of the offers.
func (o *Offers) Keep(m *Memory) {
	clear(o.list)
	m.list = o.list[:0]
}

// Add offers a container if its budget ever permits to take it. weight is the declared relative weight of its
// application's work. With LeastWork the cost of a container is the expected loss of work: the product of run time at
// the kill, dominant share of the cluster, weight, and the chance of still running then. That chance is derived from
// the run times of its queue's containers. So a container about to end is chosen before a new one, and one new
// container before two small ones.
func (o *Offers) Add(c *Container, b *Budget, weight float64) {
	r := o.r
	if r.chosen[c.Owner] {
		return
	}
	if may, _ := b.takes(r.Sizes.Check, &c.Size.V, Guarantee); may {
		o.list = append(o.list, candidate{Container: *c, budget: b, choice: o.weigh(c, weight)})
		r.lent = r.lent || c.Lent
	}
}

// weigh computes the cost of a container.
func (o *Offers) weigh(c *Container, weight float64) Choice {
	k := Choice{am: c.AM, lent: c.Lent, stays: 1, weight: float32(weight)}
	if !o.leastWork {
		return k
	}
	r, q := o.r, c.App.Queue
	wait := r.Wait.Milliseconds()
	age := max(r.Now/int64(time.Millisecond)-c.Created, 0)
	k.least = q.LeastWork
	if q.Runtimes != nil && !c.AM {
		k.stays = float32(q.Runtimes.Stays(age, wait))
	}
	k.loss = float64(age+max(wait, 1)) * r.Sizes.Dominant(&c.Size.V, &r.Total) * weight * float64(k.stays)
	return k
}

// lentFirst moves the lent containers before the others: in a partition borrowers lose before asks of its label.
func (o *Offers) lentFirst() {
	if o.r.lent {
		slices.SortStableFunc(o.list, func(a, b candidate) int { return last(a.Lent) - last(b.Lent) })
	}
}

// last orders lent containers before others.
func last(lent bool) int {
	if lent {
		return 0
	}
	return 1
}

// Why explains a choice. wait is the time from the notice to the kill.
func (k *Choice) Why(wait time.Duration) string {
	text := "it is the newest whose end frees enough"
	switch {
	case k.am:
		text = "only AMs are left"
	case k.of > 1 && k.least:
		text = fmt.Sprintf("clearing its node of %d containers loses the least work", k.of)
	case k.of > 1:
		text = fmt.Sprintf("no node is cleared by fewer than %d containers", k.of)
	case k.least:
		text = "its end loses the least work"
	}
	if k.least && k.stays < 1 {
		text += fmt.Sprintf("; of its queue's containers of that age %.0f%% end within %s", 100*(1-k.stays), wait)
	}
	if k.least && k.weight > 1 {
		text += fmt.Sprintf("; its application's settings count it %g times", k.weight)
	}
	if k.lent {
		text += "; it runs on resources lent by the label"
	}
	return text
}
