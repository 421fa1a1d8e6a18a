// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"

	"pgregory.net/rapid"
)

// Amounts are what an array of numbers is: none changes when another made from
// it does, and equal ones are equal however they came about.
func TestAmountsAreArrays(t *testing.T) {
	type twin = vecKey
	rapid.Check(t, func(t *rapid.T) {
		vs, ts := make([]vec, 4), make([]twin, 4)
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
				*v, *a = vec{}, twin{}
			case 2:
				k, x := rapid.IntRange(0, MaxTypes-1).Draw(t, "type"), rapid.Int64Range(-3, 3).Draw(t, "x")
				v.set(k, x)
				a[k] = x
			case 3:
				v.add(o)
				each(func(x, y int64) int64 { return x + y })
			case 4:
				v.sub(o)
				each(func(x, y int64) int64 { return x - y })
			case 5:
				n := rapid.Int64Range(-2, 2).Draw(t, "n")
				v.addTimes(o, n)
				each(func(x, y int64) int64 { return x + n*y })
			case 6:
				v.min(o)
				each(func(x, y int64) int64 { return min(x, y) })
			case 7:
				v.max(o)
				each(func(x, y int64) int64 { return max(x, y) })
			case 8:
				*v = vecMax
				for k := range a {
					a[k] = unbounded
				}
			}
			for k := range a {
				if a[k] > unbounded || a[k] < -unbounded { // sums of bounds mean nothing
					vs[i], ts[i] = vec{}, twin{}
					break
				}
			}
			for k := range vs {
				if vs[k].key() != ts[k] || vs[k].isZero() != (ts[k] == twin{}) {
					t.Fatalf("%d: %v, want %v", k, vs[k], ts[k])
				}
				for n := range MaxTypes {
					if vs[k].at(n) != ts[k][n] {
						t.Fatalf("%d has %d of type %d, want %d", k, vs[k].at(n), n, ts[k][n])
					}
				}
				for n := range vs {
					if vs[k].is(&vs[n]) != (ts[k] == ts[n]) {
						t.Fatalf("%v is %v: %v", vs[k], vs[n], vs[k].is(&vs[n]))
					}
				}
			}
		}
	})
}
