// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Names of the two resource types of every cluster.
const (
	MemoryName = "memory-mb"
	VCoresName = "vcores"
)

// Resource is an amount of each resource type: memory in MiB, virtual cores, and any number of named others
// ("yarn.io/gpu") in their type's own unit. It is a value: no method changes its receiver. Arithmetic saturates at the
// limits of int64. So a false amount in a request cannot wrap and become free room.
type Resource struct {
	MemoryMB int64
	VCores   int64
	Others   Amounts // sorted by name, without zeros, read-only after creation
}

// Amount is one named resource.
type Amount struct {
	Name  string
	Value int64
}

// Amounts is a sorted list of named resources.
type Amounts []Amount

// NewResource makes a resource of memory (MiB), cores and others in any order. The last of equal names wins.
// "memory-mb" and "vcores" set those fields.
func NewResource(memoryMB, vcores int64, others ...Amount) Resource {
	r := Resource{MemoryMB: memoryMB, VCores: vcores}
	for _, a := range others {
		r = r.With(a.Name, a.Value)
	}
	return r
}

// Get returns the amount of the named type, 0 without one.
func (r Resource) Get(name string) int64 {
	switch name {
	case MemoryName:
		return r.MemoryMB
	case VCoresName:
		return r.VCores
	}
	if i, ok := r.find(name); ok {
		return r.Others[i].Value
	}
	return 0
}

func (r Resource) find(name string) (int, bool) {
	return slices.BinarySearchFunc(r.Others, name, func(a Amount, n string) int { return strings.Compare(a.Name, n) })
}

// With returns r with the named type set to v; 0 removes the type.
func (r Resource) With(name string, v int64) Resource {
	switch name {
	case MemoryName:
		r.MemoryMB = v
		return r
	case VCoresName:
		r.VCores = v
		return r
	}
	i, ok := r.find(name)
	switch {
	case !ok && v == 0:
		return r
	case !ok:
		r.Others = slices.Insert(slices.Clone(r.Others), i, Amount{name, v})
	case v == 0:
		r.Others = slices.Delete(slices.Clone(r.Others), i, i+1)
	default:
		r.Others = slices.Clone(r.Others)
		r.Others[i].Value = v
	}
	if len(r.Others) == 0 {
		r.Others = nil
	}
	return r
}

// merge applies f to each type of either side, in the order of their names.
func merge(a, b Amounts, f func(x, y int64) int64) Amounts {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	out := make(Amounts, 0, len(a)+len(b))
	put := func(name string, v int64) {
		if v != 0 {
			out = append(out, Amount{name, v})
		}
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			put(a[0].Name, f(a[0].Value, 0))
			a = a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			put(b[0].Name, f(0, b[0].Value))
			b = b[1:]
		default:
			put(a[0].Name, f(a[0].Value, b[0].Value))
			a, b = a[1:], b[1:]
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func each(a, b Resource, f func(x, y int64) int64) Resource {
	return Resource{f(a.MemoryMB, b.MemoryMB), f(a.VCores, b.VCores), merge(a.Others, b.Others, f)}
}

// Add returns a + b, each type saturating.
func (r Resource) Add(b Resource) Resource {
	if len(r.Others)+len(b.Others) > 0 {
		return each(r, b, satAdd)
	}
	return Resource{MemoryMB: satAdd(r.MemoryMB, b.MemoryMB), VCores: satAdd(r.VCores, b.VCores)}
}

// Sub returns a - b, each type saturating. The result may be negative.
func (r Resource) Sub(b Resource) Resource {
	if len(r.Others)+len(b.Others) > 0 {
		return each(r, b, satSub)
	}
	return Resource{MemoryMB: satSub(r.MemoryMB, b.MemoryMB), VCores: satSub(r.VCores, b.VCores)}
}

// Min returns the lesser amount of each type.
func (r Resource) Min(b Resource) Resource {
	return each(r, b, func(x, y int64) int64 { return min(x, y) })
}

// Max returns the greater amount of each type.
func (r Resource) Max(b Resource) Resource {
	return each(r, b, func(x, y int64) int64 { return max(x, y) })
}

// Scale returns r * num / den rounded towards zero, each type saturating. den must not be 0.
func (r Resource) Scale(num, den int64) Resource {
	return each(r, Resource{}, func(x, _ int64) int64 { return mulDiv(x, num, den) })
}

// Fits reports whether each type of r is at most that of room.
func (r Resource) Fits(room Resource) bool {
	if r.MemoryMB > room.MemoryMB || r.VCores > room.VCores {
		return false
	}
	if len(r.Others) == 0 && len(room.Others) == 0 {
		return true
	}
	ok := true
	merge(r.Others, room.Others, func(x, y int64) int64 {
		ok = ok && x <= y
		return 0
	})
	return ok
}

// IsZero reports whether every amount is 0.
func (r Resource) IsZero() bool { return r.MemoryMB == 0 && r.VCores == 0 && len(r.Others) == 0 }

// IsNegative reports whether any amount is below 0.
func (r Resource) IsNegative() bool {
	return r.MemoryMB < 0 || r.VCores < 0 || slices.ContainsFunc(r.Others, func(a Amount) bool { return a.Value < 0 })
}

// Equal reports whether the amounts of both are the same.
func (r Resource) Equal(b Resource) bool {
	return r.MemoryMB == b.MemoryMB && r.VCores == b.VCores && slices.Equal(r.Others, b.Others)
}

// Dominant returns the largest share of r in total over all types, the dominant share of DRF (NSDI 2011). The share of
// a type is infinite if total has none of it and r asks for it.
func (r Resource) Dominant(total Resource) float64 {
	share := max(ratio(r.MemoryMB, total.MemoryMB), ratio(r.VCores, total.VCores))
	for _, a := range r.Others {
		share = max(share, ratio(a.Value, total.Get(a.Name)))
	}
	return share
}

func ratio(x, of int64) float64 {
	switch {
	case x <= 0:
		return 0
	case of <= 0:
		return math.Inf(1)
	}
	return float64(x) / float64(of)
}

// String returns the text that YARN prints for a resource: <memory:1024, vCores:1>. The other types follow by name:
// <memory:1024, vCores:1, yarn.io/gpu: 2>.
func (r Resource) String() string {
	var b strings.Builder
	b.WriteString("<memory:")
	b.WriteString(strconv.FormatInt(r.MemoryMB, 10))
	b.WriteString(", vCores:")
	b.WriteString(strconv.FormatInt(r.VCores, 10))
	for _, a := range r.Others {
		b.WriteString(", ")
		b.WriteString(a.Name)
		b.WriteString(": ")
		b.WriteString(strconv.FormatInt(a.Value, 10))
	}
	b.WriteByte('>')
	return b.String()
}

// ParseResource reads the output of String, and the forms YARN's tools take: "memory-mb=1Gi,vcores=2,yarn.io/gpu=1".
// Memory takes a unit (M, Mi, G, Gi, T, Ti; none is MiB). The error is an *Error of kind ErrInvalidResource.
func ParseResource(s string) (Resource, error) {
	bad := func(why string) (Resource, error) {
		if len(s) > 200 {
			s = s[:200] + "..."
		}
		return Resource{}, &Error{
			Kind: ErrInvalidResource,
			What: fmt.Sprintf("invalid resource %q", s),
			Why:  why,
			Try:  "expected <memory:1024, vCores:1> or memory-mb=1024,vcores=1",
		}
	}
	body := strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(body, "<"); ok {
		if body, ok = strings.CutSuffix(inner, ">"); !ok {
			return bad("the closing > is missing")
		}
	}
	var r Resource
	seen := map[string]bool{}
	for part := range strings.SplitSeq(body, ",") {
		i := strings.IndexAny(part, "=:")
		if i < 0 {
			return bad("a part has no value")
		}
		name, value := strings.TrimSpace(part[:i]), strings.TrimSpace(part[i+1:])
		switch strings.ToLower(name) {
		case "memory", "memory-mb":
			name = MemoryName
		case "vcores":
			name = VCoresName
		case "":
			return bad("a name is empty")
		}
		if seen[name] {
			return bad(name + " stands twice")
		}
		seen[name] = true
		digits := strings.TrimRight(value, "pnumkMGTPi")
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return bad("the value of " + name + " is no whole number")
		}
		unit := value[len(digits):]
		if name == MemoryName {
			if unit == "" {
				unit = "Mi"
			}
			if v, err = ConvertUnits(v, unit, "Mi"); err != nil {
				return bad(err.Error())
			}
		} else if unit != "" {
			if v, err = ConvertUnits(v, unit, ""); err != nil {
				return bad(err.Error())
			}
		}
		r = r.With(name, v)
	}
	return r, nil
}

// units maps each of YARN's unit prefixes to a fraction of 1.
var units = map[string]struct{ num, den int64 }{
	"p": {1, 1e12}, "n": {1, 1e9}, "u": {1, 1e6}, "m": {1, 1e3}, "": {1, 1},
	"k": {1e3, 1}, "M": {1e6, 1}, "G": {1e9, 1}, "T": {1e12, 1}, "P": {1e15, 1},
	"Ki": {1 << 10, 1}, "Mi": {1 << 20, 1}, "Gi": {1 << 30, 1}, "Ti": {1 << 40, 1}, "Pi": {1 << 50, 1},
}

// ConvertUnits converts v from one unit prefix to another ("Gi" to "Mi"). It rounds towards zero and saturates. It
// fails on an unknown prefix.
func ConvertUnits(v int64, from, to string) (int64, error) {
	if from == to {
		return v, nil
	}
	f, ok := units[from]
	t, ok2 := units[to]
	if !ok || !ok2 {
		return 0, &Error{
			Kind: ErrInvalidResource,
			What: fmt.Sprintf("unknown unit %q or %q", from, to),
			Try:  "one of p n u m k M G T P Ki Mi Gi Ti Pi or none",
		}
	}
	// One factor of each pair is 1. So a product stays below 2^63 if the result does: reduce by the greater factor
	// first.
	num, den := f.num, t.num
	if t.den > 1 {
		num = satMul(num, t.den)
	}
	if f.den > 1 {
		den = satMul(den, f.den)
	}
	return mulDiv(v, num, den), nil
}

func satAdd(a, b int64) int64 {
	s := a + b
	if a > 0 && b > 0 && s < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && s >= 0 {
		return math.MinInt64
	}
	return s
}

func satSub(a, b int64) int64 {
	d := a - b
	if a >= 0 && b < 0 && d < 0 {
		return math.MaxInt64
	}
	if a < 0 && b > 0 && d >= 0 {
		return math.MinInt64
	}
	return d
}

func satMul(a, b int64) int64 { return mulDiv(a, b, 1) }

// mulDiv returns a*b/c rounded towards zero, saturating, by 128-bit arithmetic.
func mulDiv(a, b, c int64) int64 {
	negative := (a < 0) != (b < 0) != (c < 0)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	den := magnitude(c)
	if hi >= den {
		if negative {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, den)
	switch {
	case negative && q >= 1<<63:
		return math.MinInt64
	case negative:
		return -int64(q)
	case q > math.MaxInt64:
		return math.MaxInt64
	}
	return int64(q)
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return uint64(-(v + 1)) + 1
	}
	return uint64(v)
}

// ResourceType is a countable type beyond memory and vcores. A Resource stores plain amounts: 5 "G" is 5,000,000,000.
type ResourceType struct {
	Name, Unit string // as in resource-types.xml, e.g. "yarn.io/gpu", ""
}

// CheckUnit rejects an unknown unit, and a unit below one.
func (t ResourceType) CheckUnit() error {
	u, known := units[t.Unit]
	switch {
	case !known:
		_, err := ConvertUnits(0, t.Unit, "")
		return err
	case u.den > 1:
		return &Error{
			Kind: ErrInvalidResource, What: fmt.Sprintf("unit %q is not supported", t.Unit),
			Why: "amounts are whole numbers of one", Try: "one of k M G T P Ki Mi Gi Ti Pi or none",
		}
	}
	return nil
}

// Plain returns the plain amount of v in the type's unit.
func (t ResourceType) Plain(v int64) int64 {
	if plain, err := ConvertUnits(v, t.Unit, ""); err == nil {
		return plain
	}
	return v
}

// InUnit returns a plain amount in the type's unit, rounded towards zero.
func (t ResourceType) InUnit(plain int64) int64 {
	if v, err := ConvertUnits(plain, "", t.Unit); err == nil {
		return v
	}
	return plain
}
