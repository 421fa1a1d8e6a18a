// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Shortage has the starts, in ns, of a FairScheduler leaf's shortage below its minimum and its fair share. 0 is no
// shortage.
type Shortage struct{ Minimum, Fair int64 }

// FairLeaf is a leaf of a FairScheduler, with its timeouts: math.MaxInt64 for none.
type FairLeaf struct {
	Used, Share, Minimum   amounts.Vec
	Wanted                 amounts.Vec // asks within the limits of users
	Below                  float64     // part of its fair share below which it is short
	MinimumTime, ShareTime time.Duration
}

// Short records in since the start of each shortage. It returns the need that is due by the timeouts, without queue and
// asks; no rule for none. With soon every timeout counts as expired.
func (l *FairLeaf) Short(t *Terms, since *Shortage, soon bool) (n Need) {
	want := l.Wanted
	want.Add(&l.Used)
	var fair amounts.Vec
	for i := range t.Sizes.Check {
		fair.Set(i, int64(float64(l.Share.At(i))*l.Below))
	}
	least := l.Minimum
	for _, rule := range []struct {
		due   *amounts.Vec
		since *int64
		time  time.Duration
		rule  Rule
	}{{&fair, &since.Fair, l.ShareTime, FairShare}, {&least, &since.Minimum, l.MinimumTime, MinShare}} {
		rule.due.Min(&want)
		lacks := t.Sizes.Above(rule.due, &l.Used)
		if lacks.IsZero() {
			*rule.since = 0
			continue
		}
		if *rule.since == 0 {
			*rule.since = t.Now
		}
		for i := range t.Sizes.Check {
			if rule.due.At(i) == 0 { // none of this type is promised, so it blocks nothing
				lacks.Set(i, max(0, want.At(i)-l.Used.At(i)))
			}
		}
		if t.Now-*rule.since >= int64(rule.time) || soon && rule.time < math.MaxInt64 {
			n.Rest.Max(&lacks)
			n.Rule = rule.rule
		}
	}
	return n
}

// Excess returns the amount that the leaf may lose: its use above its fair share, without a queue. It is nil for
// nothing.
func (l *FairLeaf) Excess(t *Terms) *Budget {
	b := &Budget{}
	for i := range t.Sizes.Check {
		if v := l.Used.At(i) - l.Share.At(i); v > 0 {
			b.Hard.Set(i, v)
			b.Types |= 1 << i
		}
	}
	if b.Types == 0 {
		return nil
	}
	b.Soft, b.AMs = b.Hard, b.Hard
	return b
}

// Soften limits what this round takes of the budgets, and returns the due amount of them. A round takes only a fraction
// of it, within the limit of Bound. Of that it takes the configured fraction (termination), because other containers
// end by themselves.
func (r *Round) Soften(termination float64) (due amounts.Vec) {
	for _, b := range r.Over {
		due.Add(&b.Even)
	}
	fraction := 1.0
	for i := range r.Sizes.Check {
		if d := due.At(i); d > 0 {
			fraction = min(fraction, float64(r.allowed.At(i))/float64(d))
		}
	}
	for _, b := range r.Over {
		for i := range r.Sizes.Check {
			if b.Types>>i&1 != 0 {
				b.Soft.Set(i, int64(math.Ceil(float64(b.Even.At(i))*fraction*termination)))
			}
		}
	}
	return due
}
