// SPDX-License-Identifier: Apache-2.0

package amounts

import (
	"fmt"

	"github.com/creelrm/creel"
)

// Size is a container size, shared by all containers and asks with equal sizes. It is immutable.
type Size struct {
	V      Vec
	Number SizeNumber
	Shape
}

// Shape is the data for reports that all containers of one size share. It is immutable.
type Shape struct{ Resource creel.Resource }

// SizeNumber identifies a size in four bytes, for millions of records.
type SizeNumber int32

// Sizes has the sizes in use and the rules for new ones. They are few: a container stores the number of its size, and
// containers of one size share a Shape.
type Sizes struct {
	Types
	Least Vec // smallest allocation
	Most  Vec // largest allocation
	Step  Vec // sizes are whole multiples of it

	byKey map[Key]*Size
	list  []*Size // by number
}

// NewSizes checks the rules. Types beyond vcores without a configured maximum are unlimited.
func NewSizes(t Types, least, most, step creel.Resource) (Sizes, error) {
	s := Sizes{Types: t, Least: t.Vec(least), Most: t.Vec(most), Step: t.Vec(step), byKey: map[Key]*Size{}}
	for i := 0; i < s.N; i++ {
		if s.Least.At(i) < 0 || s.Step.At(i) < 0 {
			return s, invalid("negative minimum allocation or increment of "+s.Names[i], "", "give 0 or more")
		}
		if i >= 2 && s.Most.At(i) == 0 {
			s.Most.Set(i, Unbounded)
		}
		if s.Most.At(i) < s.Least.At(i) {
			return s, invalid(
				fmt.Sprintf(
					"maximum allocation of %s is %d, below the minimum %d",
					s.Names[i],
					s.Most.At(i),
					s.Least.At(i),
				),
				"",
				"raise the maximum or lower the minimum",
			)
		}
	}
	return s, nil
}

// Of returns the size of an amount.
func (s *Sizes) Of(v Vec) *Size {
	k := v.Key()
	if z, ok := s.byKey[k]; ok {
		return z
	}
	z := &Size{V: v, Number: SizeNumber(len(s.list)), Shape: Shape{s.Resource(&v)}}
	s.byKey[k], s.list = z, append(s.list, z)
	return z
}

// At returns the size with a number.
func (s *Sizes) At(n SizeNumber) *Size { return s.list[n] }

// Normalize rounds an ask up to an amount that can be allocated: at least the minimum, in whole steps.
// With the memory-only calculator every container has one vcore, as in Hadoop. An ask above largest, or a negative
// one, is an ErrInvalidResource.
func (s *Sizes) Normalize(r creel.Resource, largest *Vec) (Vec, error) {
	if name := s.Unknown(r); name != "" {
		return Vec{}, &creel.Error{
			Kind: creel.ErrInvalidResource,
			What: "Invalid resource request! Unknown resource type " + name,
			Try:  "declare it in resource-types.xml",
		}
	}
	v := s.Vec(r)
	for i := 0; i < s.N; i++ {
		x, bound, least := v.At(i), largest.At(i), s.Least.At(i)
		if x < 0 {
			return v, s.badSize(r, i, largest, "is negative")
		}
		if x > bound && (i < s.Check || i >= 2) {
			return v, s.badSize(r, i, largest, "is greater than the maximum allowed allocation")
		}
		x = max(x, least)
		if step := s.Step.At(i); step > 1 {
			x = (x + step - 1) / step * step
		}
		v.Set(i, min(x, max(bound, least)))
	}
	if s.Check == 1 {
		v.VCores = 1
	}
	return v, nil
}

func (s *Sizes) badSize(r creel.Resource, i int, largest *Vec, why string) error {
	return &creel.Error{
		Kind: creel.ErrInvalidResource,
		What: "Invalid resource request! Cannot allocate containers as requested resource " + r.String(),
		Why:  s.Names[i] + " " + why,
		Try:  "requested maximum allocation=" + s.Resource(largest).String(),
	}
}

// Above returns v minus w, for each type at least 0.
func (s *Sizes) Above(v, w *Vec) Vec {
	var out Vec
	for i := 0; i < s.N; i++ {
		out.Set(i, max(0, v.At(i)-w.At(i)))
	}
	return out
}
