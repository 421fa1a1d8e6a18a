// SPDX-License-Identifier: Apache-2.0

package ideal

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// Terms apply to the whole tree.
type Terms struct {
	Sizes   *amounts.Sizes
	Total   amounts.Vec // of the cluster
	Balance bool        // amounts beyond the guarantees are balanced too
	Ignored float64     // fraction of a guarantee by which a leaf may exceed it without a loss
}

// Queue is the snapshot of one queue, and its ideal. A queue without children is a leaf.
type Queue struct {
	Guarantee, Used amounts.Vec
	Most            amounts.Vec // its maximum; use above it counts as permitted
	Children        []*Queue
	Priority        int32
	ByPriority      bool // its children with a higher priority come first

	// These fields are set for leaves.
	Asks    bool
	Pending amounts.Vec // of its asks
	Wanted  amounts.Vec // of Pending within the limits of users, and reservations that count twice
	Kept    bool        // it loses no container

	// Ideal is its amount if the cluster were divided again; Divide sets it.
	Ideal amounts.Vec

	want      amounts.Vec // use and demand, limited by its maximum
	spare     amounts.Vec // above the guarantee, and preemptible
	untouched amounts.Vec // above the guarantee, and not preemptible
	reach     amounts.Vec // the most that its leaves can reach
}

// measure computes what a queue and its descendants use, want and may lose.
func (x *Queue) measure(t *Terms) {
	leaf := len(x.Children) == 0
	if leaf {
		x.want = x.Used
		x.want.Add(&x.Wanted)
		if !x.Kept {
			x.spare = t.Sizes.Above(&x.Used, &x.Guarantee)
		}
	}
	for _, k := range x.Children {
		k.measure(t)
		x.want.Add(&k.want)
		x.spare.Add(&k.spare)
		x.reach.Add(&k.reach)
	}
	// A parent may lose as much as its children together, even if other children are protected.
	over := t.Sizes.Above(&x.Used, &x.Guarantee)
	x.spare.Min(&over)
	x.untouched = t.Sizes.Above(&over, &x.spare)
	most := x.Most
	most.Max(&x.Used) // its maximum may have shrunk
	x.want.Min(&most)
	if leaf {
		x.reach = x.want
		if !t.Balance {
			// A queue loses nothing to one that has its guarantee.
			own := x.Guarantee
			own.Max(&x.Used)
			x.reach.Min(&own)
		}
	}
	x.reach.Min(&x.want)
}

// Shortage is the amount that a leaf lacks.
type Shortage struct {
	Own    amounts.Vec // up to its guarantee
	Types  uint32      // types in Own; bit i for type i
	Beyond amounts.Vec // up to its ideal, if amounts are balanced and the leaf lacks each type that it asks for
}

// Short returns the shortage of a leaf.
func (x *Queue) Short(t *Terms) (s Shortage) {
	beyond := t.Balance && x.Asks
	for i := 0; i < t.Sizes.Check; i++ {
		s.Beyond.Set(i, max(0, x.Ideal.At(i)-x.Used.At(i)))
		s.Own.Set(i, min(s.Beyond.At(i), max(0, x.Guarantee.At(i)-x.Used.At(i))))
		if s.Own.At(i) > 0 {
			s.Types |= 1 << i
		}
		beyond = beyond && (s.Beyond.At(i) > 0 || x.Pending.At(i) == 0)
	}
	if !beyond {
		s.Beyond = amounts.Vec{}
	}
	return s
}

// Excess is the amount that may be taken from a leaf.
type Excess struct {
	Hard  amounts.Vec // above its guarantee
	Even  amounts.Vec // above its ideal
	Types uint32      // types with excess; bit i for type i
	Least uint32      // types without excess, whose guarantee must not be touched either
}

// Excess returns the amount that may be taken from a leaf, if it is far enough above its guarantee. It is the excess
// over the ideal, plus the part of the last container below the ideal. Without that part, large containers of another
// queue would delay a queue's guarantee. The leaf keeps its guaranteed share of the cluster: of types in excess it
// loses nothing of its guarantee. If its largest guaranteed type is not in excess, it also keeps the guarantees of
// other types. Otherwise these are ignored, as in Hadoop. If they counted, a queue with few vcores and much memory
// would deny another queue its memory for good.
func (x *Queue) Excess(t *Terms) (e Excess, has bool) {
	g := &x.Guarantee
	if x.Kept {
		return e, false
	}
	zone := *g
	for i := 0; i < t.Sizes.N; i++ {
		zone.Set(i, int64(float64(g.At(i))*(1+t.Ignored)))
	}
	if t.Sizes.Dominant(&x.Used, &t.Total) <= t.Sizes.Dominant(&zone, &t.Total) {
		return e, false
	}
	keeps := false
	for i := 0; i < t.Sizes.Check; i++ {
		if v := x.Used.At(i) - max(x.Ideal.At(i), g.At(i)); v > 0 {
			e.Hard.Set(i, x.Used.At(i)-g.At(i))
			e.Even.Set(i, v)
			e.Types |= 1 << i
			// The guarantee is rounded to whole units of each type.
			keeps = keeps || float64(g.At(i)+1) >= t.Sizes.Dominant(g, &t.Total)*float64(t.Total.At(i))
		}
	}
	if e.Types == 0 {
		return e, false
	}
	for i := 0; i < t.Sizes.Check && !keeps; i++ {
		if v := x.Used.At(i) - g.At(i); v >= 0 && e.Types>>i&1 == 0 {
			e.Hard.Set(i, v)
			e.Least |= 1 << i
		}
	}
	return e, true
}
