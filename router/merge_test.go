// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
)

type report struct {
	id         int32
	unmanaged  bool
	start, use int64
	from       string
}

var fields = router.AppFields[report]{
	ID:        func(r report) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: r.id} },
	Unmanaged: func(r report) bool { return r.unmanaged },
	Start:     func(r report) int64 { return r.start },
	Join: func(same []router.Part[report]) report {
		home := same[0].Value
		for _, uam := range same[1:] {
			home.use += uam.Value.use
		}
		return home
	},
}

// UAMs alone are no application, unless they are wanted.
func TestUAMsAloneAreLeftOut(t *testing.T) {
	parts := []router.Part[[]report]{
		{Member: "sc-a", Value: []report{{id: 1, unmanaged: true, start: 1, use: 4, from: "a"}, {id: 2, unmanaged: true, use: 1, from: "uam"}}},
		{Member: "sc-b", Value: []report{{id: 1, unmanaged: true, use: 3, from: "uam"}, {id: 3, unmanaged: true, use: 1, from: "uam"}}},
		{Member: "sc-c", Value: []report{{id: 3, unmanaged: true, start: 2, use: 2, from: "uam"}}},
	}
	apart := fields
	apart.Part = func(r report) bool { return r.from == "uam" }
	got, _ := router.MergeApps(parts, apart, nil, 0)
	if want := []report{{id: 1, unmanaged: true, start: 1, use: 7, from: "a"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, _ = router.MergeApps(parts, fields, nil, 0); len(got) != 3 {
		t.Errorf("with UAMs there are %d, want 3: %+v", len(got), got)
	}
}

func TestAnApplicationAndItsUAMsAreOne(t *testing.T) {
	parts := []router.Part[[]report]{
		{
			Member: "sc-b",
			Value: []report{
				{id: 1, unmanaged: true, start: 5, use: 3, from: "b"},
				{id: 2, start: 1, use: 1, from: "b"},
			},
		},
		{Member: "sc-c", Err: errors.New("timed out after 2s")},
		{
			Member: "sc-a",
			Value: []report{
				{id: 1, start: 9, use: 4, from: "a"},
				{id: 3, unmanaged: true, start: 4, use: 1, from: "a"},
			},
		},
		{Member: "sc-d", Value: []report{{id: 3, unmanaged: true, start: 2, use: 2, from: "d"}}},
	}
	got, missing := router.MergeApps(parts, fields, nil, 0)
	want := []report{
		{id: 3, unmanaged: true, start: 2, use: 3, from: "d"},
		{id: 2, start: 1, use: 1, from: "b"},
		{id: 1, start: 9, use: 7, from: "a"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(missing) != 1 || router.MissingText(missing) != "sc-c (timed out after 2s)" {
		t.Errorf("missing: %v", missing)
	}
	// The store knows better than a guess from start times.
	asked := 0
	got, _ = router.MergeApps(parts, fields, func(id creel.ApplicationID) (creel.SubclusterID, bool) {
		asked++
		return "sc-a", id.ID == 3
	}, 2)
	if len(got) != 2 || got[0].from != "a" || got[0].use != 3 || asked != 1 {
		t.Errorf("got %v after %d lookups", got, asked)
	}
}

func TestTheOrderOfAnswersDecidesNothing(t *testing.T) {
	parts := []router.Part[[]report]{
		{Member: "sc-a", Value: []report{{id: 1, unmanaged: true, start: 5, from: "a"}}},
		{Member: "sc-b", Value: []report{{id: 1, unmanaged: true, start: 5, from: "b"}}},
	}
	a, _ := router.MergeApps(parts, fields, nil, 0)
	slices.Reverse(parts)
	b, _ := router.MergeApps(parts, fields, nil, 0)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%v and %v", a, b)
	}
}

func TestMovedNodeIsReportedByLatestMember(t *testing.T) {
	type node struct {
		port  int32
		heard int64
		from  string
	}
	got, _ := router.MergeNodes([]router.Part[[]node]{
		{Member: "sc-a", Value: []node{{2, 10, "a"}, {1, 10, "a"}}},
		{Member: "sc-b", Value: []node{{2, 20, "b"}}},
	}, func(n node) creel.NodeID { return creel.NodeID{Host: "h", Port: n.port} }, func(n node) int64 { return n.heard })
	if want := []node{{1, 10, "a"}, {2, 20, "b"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestMeanWeighsByCapacity(t *testing.T) {
	for _, c := range []struct {
		v, w []float64
		want float64
	}{
		{[]float64{0.7, 0.7}, []float64{1, 1}, 0.7}, // Hadoop's router returns 1.4
		{[]float64{1, 0}, []float64{3, 1}, 0.75},
		{[]float64{1, 0}, []float64{0, 0}, 0.5},
		{nil, nil, 0},
	} {
		if got := router.Mean(c.v, c.w); got != c.want {
			t.Errorf("Mean(%v, %v) = %v, want %v", c.v, c.w, got, c.want)
		}
	}
}
