// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"slices"
	"testing"
	"time"
)

// A row has its application's tags, and a list by tags has those with one of them, however they are written.
func TestListsAreFilteredByTags(t *testing.T) {
	row := func(raw string) *Row { return rowOfReport([]byte(raw), "sc-a", time.Time{}) }
	a := row(`{"id":"application_1_0001","state":"RUNNING","applicationTags":"team:etl,prod"}`)
	none := row(`{"id":"application_1_0002","state":"RUNNING","applicationTags":""}`)
	if !slices.Equal(a.Tags, []string{"team:etl", "prod"}) || none.Tags != nil {
		t.Errorf("tags are %q and %q", a.Tags, none.Tags)
	}
	for _, c := range []struct {
		tags       []string
		a, noneToo bool
	}{
		{nil, true, true},
		{[]string{"prod"}, true, false}, {[]string{"Prod"}, true, false}, {[]string{"dev", "team:ETL"}, true, false},
		{[]string{"pro"}, false, false}, {[]string{"dev"}, false, false},
	} {
		f, err := NewFilter(Query{Tags: c.tags, Limit: 1})
		if err != nil || f.keeps(a) != c.a || f.keeps(none) != c.noneToo {
			t.Errorf("tags %q: %v and %v, want %v and %v; %v", c.tags, f.keeps(a), f.keeps(none), c.a, c.noneToo, err)
		}
	}
}

// Each field of a query selects by its own field of an application, and several select together.
func TestFiltersSelectByField(t *testing.T) {
	a := rowOfReport([]byte(`{"id":"application_1_0001","name":"Nightly","user":"ann","queue":"root.prod.etl",`+
		`"applicationType":"SPARK","state":"ACCEPTED","finalStatus":"UNDEFINED","diagnostics":"waits"}`), "sc-a", time.Time{})
	for _, c := range []struct {
		query Query
		keeps bool
	}{
		{Query{}, true},
		{Query{States: []string{"waiting"}}, true}, {Query{States: []string{"accepted"}}, true},
		{Query{States: []string{"running", "ended"}}, false},
		{Query{Queue: "root.prod"}, true}, {Query{Queue: "etl"}, true}, {Query{Queue: "root.pro"}, false},
		{Query{User: "ann"}, true}, {Query{User: "an"}, false},
		{Query{Type: "SPARK"}, true}, {Query{Type: "TEZ"}, false},
		{Query{Home: "sc-a"}, true}, {Query{Home: "sc-b"}, false},
		{Query{Outcome: "UNDEFINED"}, true}, {Query{Outcome: "FAILED"}, false},
		{Query{WaitsFor: "diagnostics"}, true}, {Query{WaitsFor: "am_limit"}, false}, {Query{WaitsIn: "root"}, false},
		{Query{Search: " NIGHT "}, true}, {Query{Search: "application_1_"}, true}, {Query{Search: "day"}, false},
		{Query{User: "ann", Type: "TEZ"}, false},
	} {
		c.query.Limit = 1
		f, err := NewFilter(c.query)
		if err != nil || f.keeps(a) != c.keeps {
			t.Errorf("%+v keeps it: %v, %v", c.query, f.keeps(a), err)
		}
	}
	for _, bad := range []Query{
		{Limit: 0}, {Limit: MaxPage + 1}, {Limit: 1, Sort: "colour"}, {Limit: 1, Group: "colour"}, {Limit: 1, Cursor: "x"},
	} {
		if f, err := NewFilter(bad); err == nil {
			t.Errorf("%+v is valid: %+v", bad, f)
		}
	}
}
