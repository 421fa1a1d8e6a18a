// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"math"
	"testing"
)

func TestConstraintsAreWrittenAsInPlacementSpecifications(t *testing.T) {
	tag := func(c Constraint, space, name string) *Constraint {
		target := Target{Values: []string{name}}
		if err := ParseNamespace(space, &target); err != nil {
			t.Fatal(err)
		}
		c.Targets = []Target{target}
		return &c
	}
	os := &Constraint{NotEqual: true, Targets: []Target{{Kind: ByAttribute, Key: "rm.yarn.io/os", Values: []string{"bsd"}}}}
	c := &Constraint{Op: AllOf, Parts: []*Constraint{
		tag(Constraint{}, "", "x"),
		{Op: AnyOf, Parts: []*Constraint{
			tag(Constraint{Rack: true, Min: 1, Max: math.MaxInt32}, "app-tag/red", "y"),
			tag(Constraint{Min: 2, Max: 3}, "not-self", "z"),
		}},
		tag(Constraint{Min: 2, Max: math.MaxInt32}, "app-id/application_1_0002", "z"), os,
	}}
	want := "and(notin,node,x:or(in,rack,app-tag/red/y:cardinality,node,not-self/z,2,3):" +
		"cardinality,node,app-id/application_1_0002/z,2,:rm.yarn.io/os!=bsd)"
	if c.String() != want {
		t.Errorf("%s\nwant %s", c, want)
	}
	for _, wrong := range []string{"here", "app-tag", "app-id/7"} {
		if ParseNamespace(wrong, &Target{}) == nil {
			t.Errorf("%s is taken for a namespace", wrong)
		}
	}
}
