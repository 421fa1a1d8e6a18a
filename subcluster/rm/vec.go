// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"

	"github.com/creelrm/creel"
)

// vec is an amount of every resource type, in the machine's order: memory in
// MiB, vcores, then Config.ResourceTypes. Unused places are zero, so that the
// loops have a constant length.
type vec [MaxTypes]int64

const (
	mem = 0
	cpu = 1
)

// Sums and bounds are written out: they are the most frequent things done, and
// the compiler does not unroll loops.

func (v *vec) add(b *vec) {
	v[0] += b[0]
	v[1] += b[1]
	v[2] += b[2]
	v[3] += b[3]
	v[4] += b[4]
	v[5] += b[5]
	v[6] += b[6]
	v[7] += b[7]
}

func (v *vec) sub(b *vec) {
	v[0] -= b[0]
	v[1] -= b[1]
	v[2] -= b[2]
	v[3] -= b[3]
	v[4] -= b[4]
	v[5] -= b[5]
	v[6] -= b[6]
	v[7] -= b[7]
}

// addTimes adds b n times.
func (v *vec) addTimes(b *vec, n int64) {
	switch n {
	case 1:
		v.add(b)
	case -1:
		v.sub(b)
	default:
		for i := range v {
			v[i] += b[i] * n
		}
	}
}

func (v *vec) min(b *vec) {
	v[0] = min(v[0], b[0])
	v[1] = min(v[1], b[1])
	v[2] = min(v[2], b[2])
	v[3] = min(v[3], b[3])
	v[4] = min(v[4], b[4])
	v[5] = min(v[5], b[5])
	v[6] = min(v[6], b[6])
	v[7] = min(v[7], b[7])
}

func (v *vec) max(b *vec) {
	v[0] = max(v[0], b[0])
	v[1] = max(v[1], b[1])
	v[2] = max(v[2], b[2])
	v[3] = max(v[3], b[3])
	v[4] = max(v[4], b[4])
	v[5] = max(v[5], b[5])
	v[6] = max(v[6], b[6])
	v[7] = max(v[7], b[7])
}

func (v *vec) isZero() bool { return *v == vec{} }

var vecMax = vec{math.MaxInt64 / 4, math.MaxInt64 / 4, math.MaxInt64 / 4, math.MaxInt64 / 4, math.MaxInt64 / 4, math.MaxInt64 / 4, math.MaxInt64 / 4, math.MaxInt64 / 4}

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
		return t, invalid(fmt.Sprintf("%d resource types", t.n), fmt.Sprintf("at most %d are supported, memory and vcores included", MaxTypes), "drop the types no queue or job uses")
	}
	t.check = t.n
	if cfg.Queues.Calculator == MemoryOnly {
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
				v[i] = a.Value
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
	r := creel.Resource{MemoryMB: v[mem], VCores: v[cpu]}
	for i := 2; i < t.n; i++ {
		if v[i] != 0 {
			r = r.With(t.names[i], v[i])
		}
	}
	return r
}

// fits reports whether need is at most room in every type the calculator checks.
func (t *types) fits(need, room *vec) bool {
	return need[mem] <= room[mem] && (t.check == 1 || need[cpu] <= room[cpu] && (t.check == 2 || t.othersFit(need, room)))
}

// othersFit is fits beyond memory and vcores.
func (t *types) othersFit(need, room *vec) bool {
	for i := 2; i < t.check; i++ {
		if need[i] > room[i] {
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
		if need[i] > 0 && used[i]+need[i] > bound[i] {
			return false
		}
	}
	return true
}

// dominant is the largest share of v in total over the checked types.
func (t *types) dominant(v, total *vec) float64 {
	d := 0.0
	for i := 0; i < t.check; i++ {
		if v[i] <= 0 {
			continue
		}
		if total[i] <= 0 {
			return math.Inf(1)
		}
		d = max(d, float64(v[i])/float64(total[i]))
	}
	return d
}

// size is a container size, one for all containers and asks that are equal.
type size struct {
	v      vec
	plain  bool // it has memory and vcores alone, as most do
	number sizeNumber
	Shape
}

// addTo adds the size n times to v. A grant and an end do it some twenty times.
func (s *size) addTo(v *vec, n int64) {
	v[mem] += s.v[mem] * n
	v[cpu] += s.v[cpu] * n
	if !s.plain {
		s.addOthers(v, n)
	}
}

func (s *size) addOthers(v *vec, n int64) {
	for i := 2; i < MaxTypes; i++ {
		v[i] += s.v[i] * n
	}
}

func (m *Machine) size(v vec) *size {
	if s, ok := m.sizes[v]; ok {
		return s
	}
	s := &size{v: v, plain: v == vec{v[mem], v[cpu]}, Shape: Shape{m.t.resource(&v)}}
	s.number = sizeNumber(len(m.sized))
	m.sizes[v], m.sized = s, append(m.sized, s)
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
		return vec{}, &creel.Error{Kind: creel.ErrInvalidResource, What: "Invalid resource request! Unknown resource type " + name, Try: "declare it in resource-types.xml"}
	}
	v := m.t.vec(r)
	for i := 0; i < m.t.n; i++ {
		if v[i] < 0 {
			return v, m.badSize(r, i, largest, "is negative")
		}
		if v[i] > largest[i] && (i < m.t.check || i >= 2) {
			return v, m.badSize(r, i, largest, "is greater than the maximum allowed allocation")
		}
		step := m.step[i]
		v[i] = max(v[i], m.least[i])
		if step > 1 {
			v[i] = (v[i] + step - 1) / step * step
		}
		v[i] = min(v[i], max(largest[i], m.least[i]))
	}
	if m.t.check == 1 {
		v[cpu] = 1
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
