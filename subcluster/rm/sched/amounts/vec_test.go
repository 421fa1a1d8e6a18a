// SPDX-License-Identifier: Apache-2.0

package amounts

import (
	"math"
	"math/big"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// A Vec behaves like an array of numbers: changing a copy does not change the original, and equal amounts compare
// equal however they were computed.
func TestAmountsAreArrays(t *testing.T) {
	type model = Key
	propertytest.Check(t, func(t *rapid.T) {
		vs, ts := make([]Vec, 4), make([]model, 4)
		one := rapid.IntRange(0, 3)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i, j := one.Draw(t, "i"), one.Draw(t, "j")
			v, o, a, b := &vs[i], &vs[j], &ts[i], ts[j]
			each := func(f func(x, y int64) int64) {
				for k := range a {
					a[k] = f(a[k], b[k])
				}
			}
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0:
				*v, *a = *o, b
			case 1:
				*v, *a = Vec{}, model{}
			case 2:
				k, x := rapid.IntRange(0, MaxTypes-1).Draw(t, "type"), rapid.Int64Range(-3, 3).Draw(t, "x")
				v.Set(k, x)
				a[k] = x
			case 3:
				v.Add(o)
				each(func(x, y int64) int64 { return x + y })
			case 4:
				v.Sub(o)
				each(func(x, y int64) int64 { return x - y })
			case 5:
				n := rapid.Int64Range(-2, 2).Draw(t, "n")
				v.AddTimes(o, n)
				each(func(x, y int64) int64 { return x + n*y })
			case 6:
				v.Min(o)
				each(func(x, y int64) int64 { return min(x, y) })
			case 7:
				v.Max(o)
				each(func(x, y int64) int64 { return max(x, y) })
			case 8:
				*v = Unlimited
				for k := range a {
					a[k] = Unbounded
				}
			}
			for k := range a {
				if a[k] > Unbounded || a[k] < -Unbounded { // sums of bounds mean nothing
					vs[i], ts[i] = Vec{}, model{}
					break
				}
			}
			for k := range vs {
				if vs[k].Key() != ts[k] || vs[k].IsZero() != (ts[k] == model{}) {
					t.Fatalf("%d: %v, want %v", k, vs[k], ts[k])
				}
				for n := range MaxTypes {
					if vs[k].At(n) != ts[k][n] {
						t.Fatalf("%d has %d of type %d, want %d", k, vs[k].At(n), n, ts[k][n])
					}
				}
				for n := range vs {
					if vs[k].Is(&vs[n]) != (ts[k] == ts[n]) {
						t.Fatalf("%v is %v: %v", vs[k], vs[n], vs[k].Is(&vs[n]))
					}
				}
			}
		}
	})
}

// The answer is that of exact arithmetic, also if the product overflows 64 bits: an AM may ask for two thousand
// million containers of a type counted in bytes.
func TestManyFitAsTheirProductDoes(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		types := Types{N: 3, Check: rapid.IntRange(1, 3).Draw(t, "types")}
		amount := rapid.OneOf(rapid.Int64Range(0, 1<<40), rapid.Just(int64(1)<<40))
		n := rapid.OneOf(rapid.Int64Range(1, math.MaxInt32), rapid.SampledFrom([]int64{1 << 23, 1 << 24, 1 << 30})).Draw(t, "n")
		var used, need, bound Vec
		want := true
		for i := range types.Check {
			u, x := amount.Draw(t, "used"), amount.Draw(t, "need")
			b := rapid.OneOf(amount, rapid.Just(int64(Unbounded))).Draw(t, "bound")
			used.Set(i, u)
			need.Set(i, x)
			bound.Set(i, b)
			all := new(big.Int).Mul(big.NewInt(n), big.NewInt(x))
			want = want && (x == 0 || all.Add(all, big.NewInt(u)).Cmp(big.NewInt(b)) <= 0)
		}
		if got := types.FitsPlusTimes(&used, &need, n, &bound); got != want {
			t.Fatalf("%d of %v beside %v within %v: %v, want %v", n, &need, &used, &bound, got, want)
		}
	})
}
