// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

var resources = rapid.Custom(func(t *rapid.T) Resource {
	amount := rapid.OneOf(
		rapid.Int64Range(-100, 100),
		rapid.Int64(),
		rapid.Just[int64](math.MaxInt64),
		rapid.Just[int64](math.MinInt64),
	)
	r := NewResource(amount.Draw(t, "memory"), amount.Draw(t, "vcores"))
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "yarn.io/gpu", "z"}), rapid.ID).Draw(t, "types") {
		r = r.With(name, amount.Draw(t, name))
	}
	return r
})

// clamp is the obvious reference of the saturating arithmetic.
func clamp(v *big.Int) int64 {
	switch {
	case v.IsInt64():
		return v.Int64()
	case v.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

var typeNames = []string{MemoryName, VCoresName, "a", "b", "yarn.io/gpu", "z"}

func TestArithmeticIsExactOrSaturates(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		a, b := resources.Draw(t, "a"), resources.Draw(t, "b")
		num := rapid.Int64().Draw(t, "num")
		den := rapid.Int64().Filter(func(v int64) bool { return v != 0 }).Draw(t, "den")
		sum, diff, low, high, scaled := a.Add(b), a.Sub(b), a.Min(b), a.Max(b), a.Scale(num, den)
		fits := true
		for _, n := range typeNames {
			x, y := big.NewInt(a.Get(n)), big.NewInt(b.Get(n))
			check := func(what string, got, want int64) {
				if got != want {
					t.Fatalf("%s of %s: got %d, want %d", what, n, got, want)
				}
			}
			check("sum", sum.Get(n), clamp(new(big.Int).Add(x, y)))
			check("difference", diff.Get(n), clamp(new(big.Int).Sub(x, y)))
			check("min", low.Get(n), min(a.Get(n), b.Get(n)))
			check("max", high.Get(n), max(a.Get(n), b.Get(n)))
			check(
				"scale",
				scaled.Get(n),
				clamp(new(big.Int).Quo(new(big.Int).Mul(x, big.NewInt(num)), big.NewInt(den))),
			)
			fits = fits && a.Get(n) <= b.Get(n)
		}
		if a.Fits(b) != fits {
			t.Fatalf("Fits: got %v, want %v", a.Fits(b), fits)
		}
		if back, err := ParseResource(a.String()); err != nil || !back.Equal(a) {
			t.Fatalf("%s read back as %s, %v", a, back, err)
		}
	})
}

func TestWritingOneAmountLeavesTheOriginalAlone(t *testing.T) {
	a := NewResource(1, 1, Amount{"g", 1}, Amount{"h", 2})
	_ = a.With("g", 5)
	_ = a.With("h", 0)
	_ = a.With("i", 3)
	if want := NewResource(1, 1, Amount{"h", 2}, Amount{"g", 1}); !a.Equal(want) {
		t.Errorf("a became %s", a)
	}
}

func TestResourceTexts(t *testing.T) {
	for text, want := range map[string]Resource{
		"<memory:1024, vCores:1>":                  NewResource(1024, 1),
		"<memory:1024, vCores:1, yarn.io/gpu: 2>":  NewResource(1024, 1, Amount{"yarn.io/gpu", 2}),
		"memory-mb=1Gi,vcores=2,yarn.io/gpu=1":     NewResource(1024, 2, Amount{"yarn.io/gpu", 1}),
		"memory-mb=2000M":                          NewResource(1907, 0),
		" memory-mb = 512 , vcores = 4 ":           NewResource(512, 4),
		"memory-mb=9223372036854775807Pi,vcores=0": NewResource(math.MaxInt64, 0),
	} {
		if got, err := ParseResource(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "<memory:1", "memory-mb", "memory-mb=x", "memory-mb=1Xi", "vcores=1,vcores=2", "=1", "memory=1,memory-mb=2"} {
		if _, err := ParseResource(text); !errors.Is(err, ErrInvalidResource) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		v        int64
		from, to string
		want     int64
	}{
		{1, "Gi", "Mi", 1024}, {1, "G", "Mi", 953}, {1500, "m", "", 1}, {1, "", "m", 1000}, {3, "Ki", "", 3072},
		{math.MaxInt64, "P", "p", math.MaxInt64}, {-1, "Gi", "Mi", -1024}, {5, "p", "P", 0},
	} {
		if got, err := ConvertUnits(c.v, c.from, c.to); err != nil || got != c.want {
			t.Errorf("%d%s to %s: got %d, %v; want %d", c.v, c.from, c.to, got, err, c.want)
		}
	}
	if _, err := ConvertUnits(1, "X", ""); !errors.Is(err, ErrInvalidResource) {
		t.Errorf("unknown unit: %v", err)
	}
}

// The numbers are those of the worked example in the DRF paper (NSDI 2011,
// section 4.1): 9 CPUs and 18 GB; A asks for <1 CPU, 4 GB>, B for <3 CPU, 1 GB>.
func TestDominantShareOfTheDRFPaper(t *testing.T) {
	total := NewResource(18, 9)
	if got := NewResource(12, 3).Dominant(total); got != 12.0/18 {
		t.Errorf("A's three tasks: %v", got)
	}
	if got := NewResource(2, 6).Dominant(total); got != 6.0/9 {
		t.Errorf("B's two tasks: %v", got)
	}
	if got := NewResource(0, 0, Amount{"gpu", 1}).Dominant(total); !math.IsInf(got, 1) {
		t.Errorf("a type the cluster lacks: %v", got)
	}
}

func FuzzParseResource(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, s := range []string{"<memory:1024, vCores:1>", "memory-mb=1Gi,vcores=2,yarn.io/gpu=1", "memory=1,,", "<>", "a=1m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseResource(s)
		if err != nil {
			return
		}
		if back, err := ParseResource(r.String()); err != nil || !back.Equal(r) {
			t.Fatalf("%q: %s read back as %s, %v", s, r, back, err)
		}
	})
}

func BenchmarkResourceAdd(b *testing.B) {
	x, y := NewResource(1024, 1), NewResource(2048, 2)
	b.ReportAllocs()
	for b.Loop() {
		x = x.Add(y).Sub(y)
	}
}
