// SPDX-License-Identifier: Apache-2.0

package queues

import "github.com/creelrm/creel"

// Unit says how an Amount is written.
type Unit uint8

// Units of an Amount.
const (
	Unset    Unit = iota // not given: the default of the place holds
	Percent              // of the parent's capacity (CapacityScheduler) or of the cluster (FairScheduler)
	Weight               // in proportion to the siblings' weights
	Absolute             // resources
	// percent per resource type (FairScheduler "50.0% memory, 25.0% cpu", CapacityScheduler vectors)
	PerType
	Unbounded // FairScheduler without maxResources
)

// Amount is a capacity, minimum or maximum as configured.
type Amount struct {
	Unit     Unit
	Value    float64        // Percent 0..100, or the weight
	Resource creel.Resource // Absolute
	Types    []TypePercent  // PerType, in the order written
}

// TypePercent is a percentage of one resource type ("memory-mb", "vcores", ...).
type TypePercent struct {
	Type    string
	Percent float64
}

// PercentOf, WeightOf and AbsoluteOf make Amounts.
func PercentOf(p float64) Amount         { return Amount{Unit: Percent, Value: p} }
func WeightOf(w float64) Amount          { return Amount{Unit: Weight, Value: w} }
func AbsoluteOf(r creel.Resource) Amount { return Amount{Unit: Absolute, Resource: r} }
