// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

func TestFairLeafIsShortAfterItsTimeouts(t *testing.T) {
	const never = math.MaxInt64
	for name, c := range map[string]struct {
		used, share, minimum, wanted int64
		minTime, shareTime           time.Duration
		soon                         bool
		after                        time.Duration // the shortage began before
		rule                         Rule
		rest                         int64
	}{
		"has its share":             {used: 5, share: 10, minimum: 4, wanted: 9},
		"below its share":           {used: 3, share: 10, wanted: 9, after: time.Second, rule: FairShare, rest: 2},
		"before the timeout":        {used: 3, share: 10, wanted: 9, shareTime: time.Minute, after: time.Second},
		"a question":                {used: 3, share: 10, wanted: 9, shareTime: time.Minute, soon: true, rule: FairShare, rest: 2},
		"a question, no timeout":    {used: 3, share: 10, wanted: 9, shareTime: never, soon: true},
		"wants less than its share": {used: 3, share: 10, wanted: 1, rule: FairShare, rest: 1},
		"below its minimum":         {used: 3, minimum: 7, wanted: 9, rule: MinShare, rest: 4},
		"below both":                {used: 3, share: 10, minimum: 7, wanted: 9, rule: MinShare, rest: 4},
		"minimum not due yet": {
			used: 3, share: 10, minimum: 7, wanted: 9, minTime: time.Minute, rule: FairShare, rest: 2,
		},
	} {
		w := newCluster()
		l := FairLeaf{
			Used: gb(c.used), Share: gb(c.share), Minimum: gb(c.minimum), Wanted: gb(c.wanted), Below: 0.5,
			MinimumTime: c.minTime, ShareTime: c.shareTime,
		}
		began := w.terms.Now - int64(c.after)
		since := &Shortage{Minimum: began, Fair: began}
		n := l.Short(&w.terms, since, c.soon)
		if rest := gb(c.rest); n.Rule != c.rule || !n.Rest.Is(&rest) {
			t.Errorf("%s: %v of %v, want %v of %v", name, n.Rule, n.Rest, c.rule, rest)
		}
		if short := c.used < c.share/2; (since.Fair != 0) != short || short && since.Fair != began {
			t.Errorf("%s: short of its share since %d, want %v since %d", name, since.Fair, short, began)
		}
		if short := c.used < c.minimum; (since.Minimum != 0) != short {
			t.Errorf("%s: short of its minimum since %d, want %v", name, since.Minimum, short)
		}
	}
}

func TestShortageBeginsNow(t *testing.T) {
	w, since := newCluster(), &Shortage{}
	l := FairLeaf{Share: gb(8), Wanted: gb(8), Below: 1, MinimumTime: time.Hour, ShareTime: time.Second}
	if n := l.Short(&w.terms, since, false); n.Rule != 0 || since.Fair != w.terms.Now {
		t.Errorf("a new shortage: rule %v, since %d", n.Rule, since.Fair)
	}
	w.terms.Now += int64(time.Second)
	if n := l.Short(&w.terms, since, false); n.Rule != FairShare {
		t.Errorf("after the timeout: rule %v", n.Rule)
	}
}

// A leaf below its share of one type takes what it asks for of a type of which it has no share.
func TestTypeWithoutShareBlocksNothing(t *testing.T) {
	w := newCluster()
	l := FairLeaf{Share: amounts.Vec{Memory: 8 << 10}, Wanted: gb(4), Below: 1, MinimumTime: math.MaxInt64}
	want := gb(4)
	if n := l.Short(&w.terms, &Shortage{}, false); !n.Rest.Is(&want) {
		t.Errorf("takes %v, want %v", n.Rest, want)
	}
}

func TestFairLeafLosesItsUseAboveItsShare(t *testing.T) {
	w := newCluster()
	l := FairLeaf{Used: amounts.Vec{Memory: 9 << 10, VCores: 2}, Share: gb(5)}
	b, want := l.Excess(&w.terms), amounts.Vec{Memory: 4 << 10}
	if b == nil || !b.Hard.Is(&want) || !b.Soft.Is(&want) || !b.AMs.Is(&want) || b.Types != 1 {
		t.Errorf("%+v, want %v of the first type", b, want)
	}
	l.Used = gb(5)
	if b := l.Excess(&w.terms); b != nil {
		t.Errorf("a leaf with its share loses %+v", b)
	}
}

func TestRoundTakesFractionOfWhatIsDue(t *testing.T) {
	w := newCluster()
	for _, c := range []struct{ allowed, soft int64 }{{100, 4}, {10, 2}} {
		r := NewRound(&w.terms)
		r.Bound(gb(c.allowed), amounts.Vec{})
		r.Lose(&Budget{Queue: w.a, Even: gb(12), Types: 3})
		b := &Budget{Queue: w.b, Even: gb(8), Types: 1}
		r.Lose(b)
		if due, want := r.Soften(0.5), gb(20); !due.Is(&want) {
			t.Errorf("%v is due, want %v", due, want)
		}
		if want := (amounts.Vec{Memory: c.soft << 10}); !b.Soft.Is(&want) {
			t.Errorf("with %d allowed the round takes %v, want %v", c.allowed, b.Soft, want)
		}
	}
}
