// SPDX-License-Identifier: Apache-2.0

package overallocate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
)

var usual = Config{Alloc: Shares{0.8, 0.8}, Preempt: Shares{0.95, 0.99}, Looks: 4}

var whole = Amount{10_000, 10_000}

func TestEnabledNeedsBothTypesAndAGap(t *testing.T) {
	for _, c := range []struct {
		alloc, preempt Shares
		want           bool
	}{
		{Shares{0.8, 0.8}, Shares{0.95, 0.99}, true},
		{Shares{0, 0.8}, Shares{0.95, 0.99}, false},
		{Shares{0.8, -1}, Shares{0.95, 0.99}, false},
		{Shares{0.8, 0.8}, Shares{0.8, 0.99}, false},
		{Shares{0.8, 0.8}, Shares{0.95, 0.7}, false},
	} {
		if got := (Config{Alloc: c.alloc, Preempt: c.preempt}).Enabled(); got != c.want {
			t.Errorf("%v below %v is enabled: %v", c.alloc, c.preempt, got)
		}
	}
}

func TestMemoryReclaimsAtOnceAndCPUAfterLooks(t *testing.T) {
	m, allocated := NewMonitor(usual), Amount{20_000, 20_000}
	v := m.Look(whole, Amount{9_700, 100}, Amount{}, allocated)
	if v.Reclaim != (Amount{200, 0}) {
		t.Errorf("memory 200 above the threshold reclaims %v", v.Reclaim)
	}
	hot := Amount{100, 9_950}
	for look := range 10 {
		v := m.Look(whole, hot, hot, allocated)
		want := Amount{}
		if look == 4 || look == 9 {
			want = Amount{0, 50}
		}
		if v.Reclaim != want {
			t.Errorf("look %d at a hot CPU reclaims %v, want %v", look, v.Reclaim, want)
		}
	}
	m = NewMonitor(usual)
	for range 4 {
		m.Look(whole, hot, hot, allocated)
	}
	m.Look(whole, Amount{100, 100}, Amount{}, allocated)
	if v := m.Look(whole, hot, hot, allocated); v.Reclaim != (Amount{}) {
		t.Errorf("looks on both sides of a cool one reclaim %v", v.Reclaim)
	}
}

func TestLendingEndsAtThreshold(t *testing.T) {
	m := NewMonitor(usual)
	if v := m.Look(whole, Amount{3_000, 7_000}, Amount{}, whole); v.Lend != (Amount{5_000, 1_000}) {
		t.Errorf("lends %v", v.Lend)
	}
	if v := m.Look(whole, Amount{3_000, 7_000}, Amount{3_500, 7_500}, whole); v.Lend != (Amount{4_500, 500}) {
		t.Errorf("below a predicted peak it lends %v", v.Lend)
	}
	if v := m.Look(whole, Amount{3_000, 8_000}, Amount{}, whole); v.Lend != (Amount{}) {
		t.Errorf("without spare CPU it lends %v", v.Lend)
	}
	greedy := NewMonitor(Config{Alloc: Shares{1, 1}, Preempt: Shares{2, 2}})
	if v := greedy.Look(whole, Amount{}, Amount{}, whole); v.Lend != (Amount{9_500, 9_500}) {
		t.Errorf("a threshold of 1 lends %v", v.Lend)
	}
}

func amounts(least, most int64) *rapid.Generator[Amount] {
	return rapid.Custom(func(t *rapid.T) Amount {
		return Amount{rapid.Int64Range(least, most).Draw(t, "mb"), rapid.Int64Range(least, most).Draw(t, "milli")}
	})
}

// A node never lends above its lower threshold. It never reclaims while its use is below the upper one, nor more than
// the containers beyond its size have.
func TestLooksKeepThresholds(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0.01, 1)
		c := Config{
			Alloc:   Shares{share.Draw(t, "memory"), share.Draw(t, "cpu")},
			Preempt: Shares{share.Draw(t, "upper memory"), share.Draw(t, "upper cpu")},
			Looks:   rapid.IntRange(0, 5).Draw(t, "looks"),
		}
		m := NewMonitor(c)
		for range 20 {
			use, peak := amounts(0, 12_000).Draw(t, "use"), amounts(0, 12_000).Draw(t, "peak")
			allocated := amounts(0, 30_000).Draw(t, "allocated")
			v := m.Look(whole, use, peak, allocated)
			if !c.Bounded().Enabled() && v != (Verdict{}) {
				t.Fatalf("a node that lends nothing decides %v", v)
			}
			if v.Lend != (Amount{}) && !use.Add(v.Lend).Fits(c.Bounded().Alloc.Of(whole)) {
				t.Fatalf("use %v and lent %v exceed %v", use, v.Lend, c.Alloc)
			}
			if v.Lend != (Amount{}) && v.Reclaim != (Amount{}) {
				t.Fatalf("lends and reclaims: %v", v)
			}
			if over := use.Sub(c.Preempt.Of(whole)).Positive(); !v.Reclaim.Fits(over) {
				t.Fatalf("reclaims %v of %v too much", v.Reclaim, over)
			}
			if !v.Reclaim.Fits(allocated.Sub(whole).Positive()) {
				t.Fatalf("reclaims %v of %v allocated", v.Reclaim, allocated)
			}
		}
	})
}

// The chosen containers are the youngest that help, and none more than needed.
func TestChooseTakesFewestYoungest(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		uses := rapid.SliceOfN(amounts(0, 500), 0, 12).Draw(t, "uses")
		need := amounts(-200, 2_000).Draw(t, "need")
		chosen, left := Choose(need, uses), need
		for k, i := range chosen {
			if left.Positive() == (Amount{}) {
				t.Fatalf("%d ends although enough is reclaimed", i)
			}
			if k > 0 && i <= chosen[k-1] {
				t.Fatalf("an older container ends first: %v", chosen)
			}
			if u := uses[i]; (u.MemoryMB == 0 || left.MemoryMB <= 0) && (u.MilliCores == 0 || left.MilliCores <= 0) {
				t.Fatalf("%d ends for nothing", i)
			}
			left = left.Sub(uses[i])
		}
		if left.Positive() != (Amount{}) {
			for i, u := range uses {
				helps := left.MemoryMB > 0 && u.MemoryMB > 0 || left.MilliCores > 0 && u.MilliCores > 0
				if helps && !contains(chosen, i) {
					t.Fatalf("%d could help and stays: %v of %v", i, left, need)
				}
			}
		}
	})
}

func contains(list []int, x int) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

func task1(n int64) creel.ContainerID {
	return creel.NewContainerID(creel.AttemptID{Application: creel.ApplicationID{ID: 1}, Attempt: 1}, 0, n)
}

func TestPredictionOfSteadyUseIsUse(t *testing.T) {
	var p Predictor
	s := []Sample{{task1(1), Amount{1000, 1000}, Amount{500, 250}}}
	if peak := p.Look(s); peak != (Amount{1000, 1000}) {
		t.Errorf("after one look the peak is %v, not the size", peak)
	}
	var peak Amount
	for range 50 {
		peak = p.Look(s)
	}
	// One step of the histogram above the use.
	if want := (Amount{531, 281}); peak != want {
		t.Errorf("the peak of a steady use is %v, want %v", peak, want)
	}
}

func TestPredictionIncludesRareBursts(t *testing.T) {
	var p Predictor
	var peak Amount
	for look := range 100 {
		use := Amount{100, 100}
		if look%20 == 19 && look < 80 {
			use.MilliCores = 900
		}
		peak = p.Look([]Sample{{task1(1), Amount{1000, 1000}, use}})
	}
	if peak.MilliCores < 900 {
		t.Errorf("a burst to 900 in 20 looks: the peak is %d", peak.MilliCores)
	}
	if peak.MemoryMB > 150 {
		t.Errorf("a steady memory of 100 has the peak %d", peak.MemoryMB)
	}
}

// N-sigma knows the node's use, and not which container is new: the first looks at one do not count its size.
func TestNSigmaIsBelowLargerOfBoth(t *testing.T) {
	p, larger := Predictor{Estimate: NSigma}, Predictor{}
	s := []Sample{{task1(1), Amount{1000, 1000}, Amount{500, 250}}}
	if peak := p.Look(s); peak != (Amount{500, 250}) {
		t.Errorf("the peak after one look is %v", peak)
	}
	if peak := larger.Look(s); peak != (Amount{1000, 1000}) {
		t.Errorf("the larger of both is %v", peak)
	}
}

// The peak is at least the use. It is at most the size, unless the use is not. Ended
// containers are forgotten.
func TestPredictionStaysWithinUseAndSize(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var p Predictor
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			n := rapid.IntRange(0, 6).Draw(t, "containers")
			var samples []Sample
			var size, use Amount
			for i := range n {
				s := Sample{task1(int64(i)), amounts(0, 4_000).Draw(t, "size"), amounts(0, 5_000).Draw(t, "use")}
				size, use = size.Add(s.Size), use.Add(s.Use)
				samples = append(samples, s)
			}
			peak := p.Look(samples)
			if size == (Amount{}) {
				continue
			}
			if !use.Fits(peak) || !peak.Fits(size.Max(use)) {
				t.Fatalf("peak %v with use %v of %v", peak, use, size)
			}
			if len(p.tasks) != n {
				t.Fatalf("%d containers remembered of %d", len(p.tasks), n)
			}
		}
	})
}

func TestOfCutsHostileSizes(t *testing.T) {
	a := Of(creel.NewResource(math.MaxInt64, math.MaxInt64))
	if a.MemoryMB <= 0 || a.MilliCores <= 0 || a.Add(a).MilliCores <= 0 {
		t.Errorf("a hostile size is %v", a)
	}
}
