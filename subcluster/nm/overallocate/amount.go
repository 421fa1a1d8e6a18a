// SPDX-License-Identifier: Apache-2.0

package overallocate

import (
	"math"

	"github.com/creelrm/creel"
)

// Amount is a measured use, or an allocation in the same units. A container may use a small part of a vcore.
type Amount struct{ MemoryMB, MilliCores int64 }

// milli is the number of milli-cores of a vcore.
const milli = 1000

// Of returns the memory and the vcores of a resource. Amounts of a hostile size are cut, so that sums do not overflow.
func Of(r creel.Resource) Amount {
	const most = math.MaxInt64 / milli / 1024
	return Amount{min(max(r.MemoryMB, 0), most), min(max(r.VCores, 0), most) * milli}
}

// Add returns the sum.
func (a Amount) Add(b Amount) Amount {
	return Amount{a.MemoryMB + b.MemoryMB, a.MilliCores + b.MilliCores}
}

// Sub returns the difference, whose parts may be negative.
func (a Amount) Sub(b Amount) Amount {
	return Amount{a.MemoryMB - b.MemoryMB, a.MilliCores - b.MilliCores}
}

// Fits reports whether no part exceeds that of b.
func (a Amount) Fits(b Amount) bool { return a.MemoryMB <= b.MemoryMB && a.MilliCores <= b.MilliCores }

// Min returns the smaller of each part.
func (a Amount) Min(b Amount) Amount {
	return Amount{min(a.MemoryMB, b.MemoryMB), min(a.MilliCores, b.MilliCores)}
}

// Max returns the larger of each part.
func (a Amount) Max(b Amount) Amount {
	return Amount{max(a.MemoryMB, b.MemoryMB), max(a.MilliCores, b.MilliCores)}
}

// Positive returns the amount with 0 for negative parts.
func (a Amount) Positive() Amount { return a.Max(Amount{}) }

// Shares are fractions of a node by resource type.
type Shares struct{ Memory, CPU float64 }

// Of returns the shares of a total, rounded down.
func (s Shares) Of(total Amount) Amount {
	return Amount{int64(s.Memory * float64(total.MemoryMB)), int64(s.CPU * float64(total.MilliCores))}
}
