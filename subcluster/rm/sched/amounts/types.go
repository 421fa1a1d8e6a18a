// SPDX-License-Identifier: Apache-2.0

package amounts

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/creelrm/creel"
)

// Types has the resource types, and the number of those that the calculator compares.
type Types struct {
	Names []string
	N     int // number of types
	Check int // number of types compared and checked: 1 with the memory-only calculator, else N
}

// NewTypes returns memory, vcores and the named types. memoryOnly is Hadoop's DefaultResourceCalculator, which
// compares only memory.
func NewTypes(further []string, memoryOnly bool) (Types, error) {
	t := Types{Names: []string{"memory-mb", "vcores"}}
	for _, name := range further {
		if slices.Contains(t.Names, name) {
			return t, invalid("resource type "+name+" is listed twice", "", "list each type once")
		}
		t.Names = append(t.Names, name)
	}
	t.N = len(t.Names)
	if t.N > MaxTypes {
		return t, invalid(
			fmt.Sprintf("%d resource types", t.N),
			fmt.Sprintf("at most %d are supported, memory and vcores included", MaxTypes),
			"remove types that no queue or job uses",
		)
	}
	t.Check = t.N
	if memoryOnly {
		t.Check = 1
	}
	return t, nil
}

// Vec converts a resource; unknown types are dropped, as in YARN.
func (t *Types) Vec(r creel.Resource) Vec {
	v := Vec{Memory: r.MemoryMB, VCores: r.VCores}
	for _, a := range r.Others {
		for i := 2; i < t.N; i++ {
			if t.Names[i] == a.Name {
				v.Set(i, a.Value)
			}
		}
	}
	return v
}

// Unknown returns the name of an unknown type in r, "" if there is none.
func (t *Types) Unknown(r creel.Resource) string {
next:
	for _, a := range r.Others {
		for i := 2; i < t.N; i++ {
			if t.Names[i] == a.Name {
				continue next
			}
		}
		if a.Value != 0 {
			return a.Name
		}
	}
	return ""
}

// Resource converts an amount to named types.
func (t *Types) Resource(v *Vec) creel.Resource {
	r := creel.Resource{MemoryMB: v.Memory, VCores: v.VCores}
	for i := 2; i < t.N; i++ {
		if x := v.At(i); x != 0 {
			r = r.With(t.Names[i], x)
		}
	}
	return r
}

// Fits reports whether need is at most room in every checked type.
func (t *Types) Fits(need, room *Vec) bool {
	if t.Check != 2 {
		return t.allFit(need, room)
	}
	return need.Memory <= room.Memory && need.VCores <= room.VCores
}

// allFit is Fits for any number of types.
func (t *Types) allFit(need, room *Vec) bool {
	for i := 0; i < t.Check; i++ {
		if need.At(i) > room.At(i) {
			return false
		}
	}
	return true
}

// FitsPlus reports whether used+need is at most bound in each checked type with a need above zero. A queue above its
// bound in vcores may still get a container that needs no vcores.
func (t *Types) FitsPlus(used, need, bound *Vec) bool { return t.FitsPlusTimes(used, need, 1, bound) }

// FitsPlusTimes is FitsPlus for n times need.
func (t *Types) FitsPlusTimes(used, need *Vec, n int64, bound *Vec) bool {
	if t.Check != 2 {
		return t.allFitPlus(used, need, n, bound)
	}
	return fitsTimes(used.Memory, need.Memory, n, bound.Memory) && fitsTimes(used.VCores, need.VCores, n, bound.VCores)
}

// fitsTimes is FitsPlusTimes for one type. n times need may overflow an int64.
func fitsTimes(used, need, n, bound int64) bool {
	if n == 1 { // a division would cost more than everything else
		return need <= 0 || used+need <= bound
	}
	return need <= 0 || need <= (bound-used)/n
}

// allFitPlus is FitsPlusTimes for any number of types.
func (t *Types) allFitPlus(used, need *Vec, n int64, bound *Vec) bool {
	for i := 0; i < t.Check; i++ {
		if !fitsTimes(used.At(i), need.At(i), n, bound.At(i)) {
			return false
		}
	}
	return true
}

// Dominant is the largest share of v in total, over the checked types.
func (t *Types) Dominant(v, total *Vec) float64 {
	d := share(v.Memory, total.Memory)
	if t.Check == 1 {
		return d
	}
	d = max(d, share(v.VCores, total.VCores))
	for i := 2; i < t.Check; i++ {
		d = max(d, share(v.At(i), total.At(i)))
	}
	return d
}

// Compare returns 1 if a is larger than b and -1 if smaller, by their dominant shares of total. If these are equal,
// the next largest shares decide, and so on: Hadoop's order of whole amounts.
func (t *Types) Compare(a, b, total *Vec) int {
	if t.Check == 1 {
		return cmp.Compare(a.Memory, b.Memory)
	}
	if c := cmp.Compare(t.Dominant(a, total), t.Dominant(b, total)); c != 0 {
		return c // the usual case; the rest costs several times as much
	}
	x, y := t.shares(a, total), t.shares(b, total)
	return slices.Compare(x[:t.Check], y[:t.Check])
}

// shares returns the share of each checked type, the largest first.
func (t *Types) shares(v, total *Vec) (out [MaxTypes]float64) {
	for i := 0; i < t.Check; i++ {
		x := share(v.At(i), total.At(i))
		k := i
		for ; k > 0 && out[k-1] < x; k-- {
			out[k] = out[k-1]
		}
		out[k] = x
	}
	return out
}

func share(x, of int64) float64 {
	switch {
	case x <= 0:
		return 0
	case of <= 0:
		return math.Inf(1)
	}
	return float64(x) / float64(of)
}

func invalid(what, why, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Why: why, Try: try}
}
