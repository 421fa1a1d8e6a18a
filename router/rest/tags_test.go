// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/url"
	"slices"
	"testing"
	"time"
)

// A row has its application's tags, and a list by tags has those with one of them, however
// they are written.
func TestListsAreFilteredByTags(t *testing.T) {
	row := func(raw string) *AppRow { return appRow([]byte(raw), "sc-a", time.Time{}) }
	a := row(`{"id":"application_1_0001","state":"RUNNING","applicationTags":"team:etl,prod"}`)
	none := row(`{"id":"application_1_0002","state":"RUNNING","applicationTags":""}`)
	if !slices.Equal(a.Tags, []string{"team:etl", "prod"}) || none.Tags != nil {
		t.Errorf("tags are %q and %q", a.Tags, none.Tags)
	}
	for query, keeps := range map[string][2]bool{
		"": {true, true}, "prod": {true, false}, "Prod": {true, false}, "dev, team:ETL": {true, false},
		"pro": {false, false}, "dev": {false, false}, ",": {true, true},
	} {
		f, err := readAppFilter(url.Values{"tag": {query}})
		if err != nil || f.keeps(a) != keeps[0] || f.keeps(none) != keeps[1] {
			t.Errorf("tag=%q keeps %v and %v, want %v; %v", query, f.keeps(a), f.keeps(none), keeps, err)
		}
	}
}
