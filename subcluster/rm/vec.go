// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// vec is an amount of every resource type, in the machine's order: memory in
// MiB, vcores, then Config.ResourceTypes. Most clusters have the first two
// alone, so these are 24 bytes and what is done to them is done to two numbers.
type vec struct {
	_        [0]func() // compared by is, never by ==
	mem, cpu int64
	more     *others // nil: none of any further type
}

// others are amounts of the types after the first two. They are never changed,
// as amounts that are equal may share them.
type others [MaxTypes - 2]int64

// The first two types by number.
const (
	mem = 0
	cpu = 1
)

// at gives the amount of one type.
func (v *vec) at(i int) int64 {
	switch {
	case i == mem:
		return v.mem
	case i == cpu:
		return v.cpu
	case v.more == nil:
		return 0
	}
	return v.more[i-2]
}

// set changes the amount of one type.
func (v *vec) set(i int, x int64) {
	switch i {
	case mem:
		v.mem = x
	case cpu:
		v.cpu = x
	default:
		o := v.others()
		o[i-2] = x
		v.setOthers(&o)
	}
}

func (v *vec) others() others {
	if v.more == nil {
		return others{}
	}
	return *v.more
}

func (v *vec) setOthers(o *others) {
	switch {
	case *o == others{}:
		v.more = nil
	case v.more == nil || *v.more != *o:
		v.more = &others{}
		*v.more = *o
	}
}

func (v *vec) add(b *vec) { v.addTimes(b, 1) }

func (v *vec) sub(b *vec) { v.addTimes(b, -1) }

// addTimes adds b n times.
func (v *vec) addTimes(b *vec, n int64) {
	v.mem += b.mem * n
	v.cpu += b.cpu * n
	if b.more != nil {
		v.addOthers(b, n)
	}
}

// addOthers is addTimes for further types. It stays out of addTimes, which is
// the most frequent thing done and thereby stays small.
//
//go:noinline
func (v *vec) addOthers(b *vec, n int64) {
	o := v.others()
	for i := range o {
		o[i] += b.more[i] * n
	}
	v.setOthers(&o)
}

func (v *vec) min(b *vec) {
	v.mem = min(v.mem, b.mem)
	v.cpu = min(v.cpu, b.cpu)
	if v.more != b.more {
		v.minOthers(b)
	}
}

func (v *vec) minOthers(b *vec) {
	switch {
	case b.more == vecMax.more:
		return
	case v.more == vecMax.more:
		v.more = b.more
		return
	}
	o, p := v.others(), b.others()
	for i := range o {
		o[i] = min(o[i], p[i])
	}
	v.setOthers(&o)
}

func (v *vec) max(b *vec) {
	v.mem, v.cpu = max(v.mem, b.mem), max(v.cpu, b.cpu)
	if v.more != b.more {
		o, p := v.others(), b.others()
		for i := range o {
			o[i] = max(o[i], p[i])
		}
		v.setOthers(&o)
	}
}

// is reports whether both are the same amount.
func (v *vec) is(b *vec) bool {
	return v.mem == b.mem && v.cpu == b.cpu &&
		(v.more == b.more || v.more != nil && b.more != nil && *v.more == *b.more)
}

func (v *vec) isZero() bool { return v.mem == 0 && v.cpu == 0 && v.more == nil }

// key is the amount as something to look up.
func (v *vec) key() vecKey {
	k := vecKey{mem: v.mem, cpu: v.cpu}
	if v.more != nil {
		copy(k[2:], v.more[:])
	}
	return k
}

type vecKey [MaxTypes]int64

func (v vec) String() string { return fmt.Sprint([MaxTypes]int64(v.key())) }

const unbounded = math.MaxInt64 / 4

var vecMax = vec{
	mem:  unbounded,
	cpu:  unbounded,
	more: &others{unbounded, unbounded, unbounded, unbounded, unbounded, unbounded},
}

// types knows the resource types and which of them the calculator looks at.
type types struct {
	names []string
	units []string
	n     int // types in all
	check int // types compared and checked: 1 with MemoryOnly, else n
}

func newTypes(cfg *Config) (types, error) {
	t := types{names: []string{"memory-mb", "vcores"}, units: []string{"Mi", ""}}
	for _, rt := range cfg.ResourceTypes {
		for _, have := range t.names {
			if have == rt.Name {
				return t, invalid("resource type "+rt.Name+" is given twice", "", "list each type once")
			}
		}
		t.names, t.units = append(t.names, rt.Name), append(t.units, rt.Unit)
	}
	t.n = len(t.names)
	if t.n > MaxTypes {
		return t, invalid(
			fmt.Sprintf("%d resource types", t.n),
			fmt.Sprintf("at most %d are supported, memory and vcores included", MaxTypes),
			"drop the types no queue or job uses",
		)
	}
	t.check = t.n
	if cfg.Queues.Calculator == queues.MemoryOnly {
		t.check = 1
	}
	return t, nil
}

// vec reads a resource; types the machine does not know are dropped, as YARN does.
func (t *types) vec(r creel.Resource) vec {
	v := vec{mem: r.MemoryMB, cpu: r.VCores}
	for _, a := range r.Others {
		for i := 2; i < t.n; i++ {
			if t.names[i] == a.Name {
				v.set(i, a.Value)
			}
		}
	}
	return v
}

// unknown gives the name of a type in r that the machine does not know, "" for none.
func (t *types) unknown(r creel.Resource) string {
next:
	for _, a := range r.Others {
		for i := 2; i < t.n; i++ {
			if t.names[i] == a.Name {
				continue next
			}
		}
		if a.Value != 0 {
			return a.Name
		}
	}
	return ""
}

func (t *types) resource(v *vec) creel.Resource {
	r := creel.Resource{MemoryMB: v.mem, VCores: v.cpu}
	for i := 2; i < t.n; i++ {
		if x := v.at(i); x != 0 {
			r = r.With(t.names[i], x)
		}
	}
	return r
}

// fits reports whether need is at most room in every type the calculator checks.
func (t *types) fits(need, room *vec) bool {
	if t.check != 2 {
		return t.allFit(need, room)
	}
	return need.mem <= room.mem && need.cpu <= room.cpu
}

// allFit is fits for any number of types.
func (t *types) allFit(need, room *vec) bool {
	for i := 0; i < t.check; i++ {
		if need.at(i) > room.at(i) {
			return false
		}
	}
	return true
}

// fitsPlus reports whether used+need is at most bound, in the checked types
// that need has any of: a queue that stands above its bound in vcores may still
// get what needs none.
func (t *types) fitsPlus(used, need, bound *vec) bool {
	for i := 0; i < t.check; i++ {
		if x := need.at(i); x > 0 && used.at(i)+x > bound.at(i) {
			return false
		}
	}
	return true
}

// dominant is the largest share of v in total over the checked types.
func (t *types) dominant(v, total *vec) float64 {
	d := share(v.mem, total.mem)
	for i := 1; i < t.check; i++ {
		d = max(d, share(v.at(i), total.at(i)))
	}
	return d
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

// size is a container size, one for all containers and asks that are equal.
type size struct {
	v      vec
	number sizeNumber
	Shape
}

func (m *Machine) size(v vec) *size {
	k := v.key()
	if s, ok := m.sizes[k]; ok {
		return s
	}
	s := &size{v: v, number: sizeNumber(len(m.sized)), Shape: Shape{m.t.resource(&v)}}
	m.sizes[k], m.sized = s, append(m.sized, s)
	return s
}

// sizeNumber is a size's place in Machine.sized.
type sizeNumber int32

func (m *Machine) sizeOf(c *container) *size { return m.sized[c.size] }

// normalize rounds an ask up to what is given out: at least the minimum, in
// steps of the increment. With the memory-only calculator every container has
// one vcore, as in Hadoop. Above the maximum, or negative, is an error.
func (m *Machine) normalize(r creel.Resource, largest *vec) (vec, error) {
	if name := m.t.unknown(r); name != "" {
		return vec{}, &creel.Error{
			Kind: creel.ErrInvalidResource,
			What: "Invalid resource request! Unknown resource type " + name,
			Try:  "declare it in resource-types.xml",
		}
	}
	v := m.t.vec(r)
	for i := 0; i < m.t.n; i++ {
		x, bound, least := v.at(i), largest.at(i), m.least.at(i)
		if x < 0 {
			return v, m.badSize(r, i, largest, "is negative")
		}
		if x > bound && (i < m.t.check || i >= 2) {
			return v, m.badSize(r, i, largest, "is greater than the maximum allowed allocation")
		}
		x = max(x, least)
		if step := m.step.at(i); step > 1 {
			x = (x + step - 1) / step * step
		}
		v.set(i, min(x, max(bound, least)))
	}
	if m.t.check == 1 {
		v.cpu = 1
	}
	return v, nil
}

func (m *Machine) badSize(r creel.Resource, i int, largest *vec, why string) error {
	return &creel.Error{
		Kind: creel.ErrInvalidResource,
		What: "Invalid resource request! Cannot allocate containers as requested resource " + r.String(),
		Why:  m.t.names[i] + " " + why,
		Try:  "requested maximum allocation=" + m.t.resource(largest).String(),
	}
}

func invalid(what, why, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Why: why, Try: try}
}
