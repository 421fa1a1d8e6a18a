// SPDX-License-Identifier: Apache-2.0

package amounts

import (
	"fmt"
	"math"
)

// Vec is an amount of every resource type, in the order of Types: memory in MiB, vcores, then the further types. Most
// clusters have only the first two, so a Vec takes 24 bytes and operations touch only two numbers. BenchmarkChurn of
// subcluster/rm justifies it: each grant and release touches fewer cache lines (docs/bench/scheduler.md).
type Vec struct {
	_              [0]func() // compare with Is, never with ==
	Memory, VCores int64
	more           *others // nil: zero of every further type
}

// others are amounts of the types after the first two. They are immutable, because equal amounts may share them.
type others [MaxTypes - 2]int64

// MaxTypes limits the resource types, including memory and vcores.
const MaxTypes = 8

// The first two types by number.
const (
	Memory = 0
	VCores = 1
)

// At returns the amount of one type.
func (v *Vec) At(i int) int64 {
	switch {
	case i == Memory:
		return v.Memory
	case i == VCores:
		return v.VCores
	case v.more == nil:
		return 0
	}
	return v.more[i-2]
}

// Set changes the amount of one type.
func (v *Vec) Set(i int, x int64) {
	switch i {
	case Memory:
		v.Memory = x
	case VCores:
		v.VCores = x
	default:
		o := v.others()
		o[i-2] = x
		v.setOthers(&o)
	}
}

func (v *Vec) others() others {
	if v.more == nil {
		return others{}
	}
	return *v.more
}

func (v *Vec) setOthers(o *others) {
	switch {
	case *o == others{}:
		v.more = nil
	case v.more == nil || *v.more != *o:
		v.more = &others{}
		*v.more = *o
	}
}

// Add adds b.
func (v *Vec) Add(b *Vec) { v.AddTimes(b, 1) }

// Sub subtracts b.
func (v *Vec) Sub(b *Vec) { v.AddTimes(b, -1) }

// AddTimes adds n times b.
func (v *Vec) AddTimes(b *Vec, n int64) {
	v.Memory += b.Memory * n
	v.VCores += b.VCores * n
	if b.more != nil {
		v.addOthers(b, n)
	}
}

// addOthers is AddTimes for further types. It is separate so that AddTimes, the most frequent operation, stays small.
//
//go:noinline
func (v *Vec) addOthers(b *Vec, n int64) {
	o := v.others()
	for i := range o {
		o[i] += b.more[i] * n
	}
	v.setOthers(&o)
}

// Min lowers each type to the amount in b, if that is smaller.
func (v *Vec) Min(b *Vec) {
	v.Memory = min(v.Memory, b.Memory)
	v.VCores = min(v.VCores, b.VCores)
	if v.more != b.more {
		v.minOthers(b)
	}
}

func (v *Vec) minOthers(b *Vec) {
	switch {
	case b.more == Unlimited.more:
		return
	case v.more == Unlimited.more:
		v.more = b.more
		return
	}
	o, p := v.others(), b.others()
	for i := range o {
		o[i] = min(o[i], p[i])
	}
	v.setOthers(&o)
}

// Max raises each type to the amount in b, if that is larger.
func (v *Vec) Max(b *Vec) {
	v.Memory, v.VCores = max(v.Memory, b.Memory), max(v.VCores, b.VCores)
	if v.more != b.more {
		o, p := v.others(), b.others()
		for i := range o {
			o[i] = max(o[i], p[i])
		}
		v.setOthers(&o)
	}
}

// Is reports whether both amounts are equal.
func (v *Vec) Is(b *Vec) bool {
	return v.Memory == b.Memory && v.VCores == b.VCores &&
		(v.more == b.more || v.more != nil && b.more != nil && *v.more == *b.more)
}

// IsZero reports whether every type is zero.
func (v *Vec) IsZero() bool { return v.Memory == 0 && v.VCores == 0 && v.more == nil }

// Further is the set of types after the first two with a non-zero amount; bit 0 stands for type 2.
func (v *Vec) Further() uint32 {
	if v.more == nil {
		return 0
	}
	var set uint32
	for i, x := range v.more {
		if x > 0 {
			set |= 1 << i
		}
	}
	return set
}

// Key returns the amount as a map key.
func (v *Vec) Key() Key {
	k := Key{Memory: v.Memory, VCores: v.VCores}
	if v.more != nil {
		copy(k[2:], v.more[:])
	}
	return k
}

// Key is a comparable amount.
type Key [MaxTypes]int64

func (v Vec) String() string { return fmt.Sprint([MaxTypes]int64(v.Key())) }

// Unbounded exceeds any possible amount of a type; sums of a few stay in range.
const Unbounded = math.MaxInt64 / 4

// Unlimited is unbounded in every type. It must not be changed.
var Unlimited = Vec{
	Memory: Unbounded,
	VCores: Unbounded,
	more:   &others{Unbounded, Unbounded, Unbounded, Unbounded, Unbounded, Unbounded},
}
