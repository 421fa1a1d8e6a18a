// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"math"

	"github.com/creelrm/creel"
)

// Unit is the notation of an Amount.
type Unit uint8

// Units of an Amount.
const (
	Unset    Unit = iota // not configured: a default applies
	Percent              // of the parent's capacity (CapacityScheduler) or of the cluster (FairScheduler)
	Weight               // in proportion to the siblings' weights
	Absolute             // resources
	// PerType is a percentage per resource type (FairScheduler "50.0% memory, 25.0% cpu", CapacityScheduler vectors)
	PerType
	Unbounded // FairScheduler without maxResources
	Mixed     // per resource type a percentage, a weight or an amount; only if Spec.Vectors
)

// Amount is a capacity, minimum or maximum as configured.
type Amount struct {
	Unit     Unit
	Value    float64        // Percent 0..100, or the weight
	Resource creel.Resource // Absolute
	Types    []TypePercent  // PerType, in written order
	Mixed    []TypeAmount   // Mixed, in written order
}

// TypePercent is a percentage of one resource type ("memory-mb", "vcores", ...).
type TypePercent struct {
	Type    string
	Percent float64
}

// TypeAmount is the amount of one resource type: Percent, Weight, or Absolute in the type's own unit.
type TypeAmount struct {
	Type  string
	Unit  Unit
	Value float64
}

// Of returns the unit and number for one resource type. A type that a list does not name is Absolute 0. For an absent
// amount, every type is Unset.
func (a *Amount) Of(name string) (Unit, float64) {
	switch a.Unit {
	case Percent, Weight:
		return a.Unit, a.Value
	case Absolute:
		return Absolute, float64(a.Resource.Get(name))
	case PerType:
		for _, t := range a.Types {
			if t.Type == name {
				return Percent, t.Percent
			}
		}
		return Absolute, 0
	case Mixed:
		for _, t := range a.Mixed {
			if t.Type == name {
				return t.Unit, t.Value
			}
		}
		return Absolute, 0
	}
	return Unset, 0
}

// Uniform returns the unit of all resource types, of which names lists those of the cluster, or Mixed if they have
// several. A type that a list does not name is Absolute 0, so that a list of weights for some types is Mixed.
func (a *Amount) Uniform(names []string) Unit {
	if a.Unit != PerType && a.Unit != Mixed {
		return a.Unit
	}
	unit := Unset
	for _, name := range names {
		of, _ := a.Of(name)
		if unit != Unset && of != unit {
			return Mixed
		}
		unit = of
	}
	return unit
}

// PercentOf, WeightOf and AbsoluteOf make Amounts.
func PercentOf(p float64) Amount         { return Amount{Unit: Percent, Value: p} }
func WeightOf(w float64) Amount          { return Amount{Unit: Weight, Value: w} }
func AbsoluteOf(r creel.Resource) Amount { return Amount{Unit: Absolute, Resource: r} }

// Amounts returns the amounts of an Amount as Hadoop's documents list them: 0 for a type with a weight or without a
// limit, and none at all without memory or beside a percentage.
func (a *Amount) Amounts() creel.Resource {
	r := a.Resource
	if a.Unit == Mixed {
		r = creel.Resource{}
		for _, t := range a.Mixed {
			switch t.Unit {
			case Percent:
				return creel.Resource{}
			case Absolute:
				r = r.With(t.Type, int64(t.Value))
			}
		}
	}
	if r.MemoryMB == 0 || r.MemoryMB == math.MaxInt64 {
		return creel.Resource{}
	}
	if r.VCores == math.MaxInt64 {
		r.VCores = 0
	}
	for _, o := range r.Others {
		if o.Value == math.MaxInt64 {
			r = r.With(o.Name, 0)
		}
	}
	return r
}
