// SPDX-License-Identifier: Apache-2.0

package statestore_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/storetest"
)

// Reports in the form "member app[u][e][attempt][@submitted]"; want is
// "app=home" and "app!others:rule".
func TestTwoResourceManagersThatClaimOneApplication(t *testing.T) {
	for _, c := range []struct {
		name    string
		reports map[creel.SubclusterID][]statestore.ReportedApplication
		homes   string
		audit   string
	}{
		{"one claims it", map[creel.SubclusterID][]statestore.ReportedApplication{"sc-1": {{ID: storetest.App(1)}}}, "1=sc-1", ""},
		{"work is kept", map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-1": {{ID: storetest.App(1), Ended: true, Attempt: 5}}, "sc-2": {{ID: storetest.App(1), Attempt: 1}}}, "1=sc-2", "has not ended"},
		{"the higher attempt got further", map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-1": {{ID: storetest.App(1), Attempt: 1}}, "sc-2": {{ID: storetest.App(1), Attempt: 2, Submitted: time.UnixMilli(9)}}}, "1=sc-2", "attempt 2"},
		{"the first to accept", map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-1": {{ID: storetest.App(1), Submitted: time.UnixMilli(9)}}, "sc-2": {{ID: storetest.App(1), Submitted: time.UnixMilli(8)}}}, "1=sc-2", "accepted there first"},
		{"the name, when all is even", map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-2": {{ID: storetest.App(1)}}, "sc-1": {{ID: storetest.App(1)}}, "sc-3": {{ID: storetest.App(1)}}}, "1=sc-1", "sorts first"},
		{"a subcluster with a UAM is no home", map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-1": {{ID: storetest.App(1), Unmanaged: true, Attempt: 9}}, "sc-2": {{ID: storetest.App(1), Ended: true}}}, "1=sc-2", ""},
		{"one that was submitted with an unmanaged AM", map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-2": {{ID: storetest.App(1), Unmanaged: true}}}, "1=sc-2", ""},
		{"its home is older than its UAMs, which are not ended", map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-1": {{ID: storetest.App(1), Unmanaged: true, Submitted: time.UnixMilli(9)}}, "sc-2": {{ID: storetest.App(1), Unmanaged: true, Submitted: time.UnixMilli(8)}}}, "1=sc-2", "others=[] rule=\"all its AMs are unmanaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var reports []statestore.Report
			for _, m := range slices.Sorted(maps.Keys(c.reports)) {
				apps := c.reports[m]
				reports = append(
					reports,
					statestore.Report{Member: m, Applications: apps},
					statestore.Report{Member: m, Applications: apps},
				)
			}
			var first string
			rnd := propertytest.Rand(t)
			for range 10 { // the order of the reports does not matter
				rnd.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
				homes, conflicts := statestore.Rebuild(reports)
				var got []string
				for _, h := range homes {
					got = append(got, fmt.Sprintf("%d=%s", h.ID.ID, h.Home))
				}
				if strings.Join(got, " ") != c.homes {
					t.Fatalf("homes are %v, want %s", got, c.homes)
				}
				if (c.audit == "") != (len(conflicts) == 0) ||
					c.audit != "" && !strings.Contains(conflicts[0].String(), c.audit) {
					t.Fatalf("conflicts are %v, want %q", conflicts, c.audit)
				}
				if text := fmt.Sprint(homes, conflicts); first == "" {
					first = text
				} else if text != first {
					t.Fatalf("the order decides: %s, then %s", first, text)
				}
			}
		})
	}
}

// A member that lost the home may know a higher claim than the home.
func TestRebuiltHomeHasNewestReportedClaim(t *testing.T) {
	homes, _ := statestore.Rebuild([]statestore.Report{
		{Member: "sc-1", Applications: []statestore.ReportedApplication{{ID: storetest.App(1), Running: true, Newest: 2}}},
		{Member: "sc-2", Applications: []statestore.ReportedApplication{{ID: storetest.App(1), Newest: 7}}},
	})
	if len(homes) != 1 || homes[0].Home != "sc-1" || homes[0].Newest != 7 {
		t.Errorf("homes are %+v, want sc-1 with claim 7", homes)
	}
	m := memory.New(memory.NewState("m", nil), time.Now)
	homes[0].Newest = statestore.MostRaised + 1
	if _, err := statestore.Reclaim(t.Context(), m, homes); err != nil {
		t.Fatal(err)
	}
	if _, number, err := m.Claim(t.Context(), storetest.App(1), "sc-1", nil); err != nil || number != 3 {
		t.Errorf("an unbelievable report led to claim %d, %v, want 3", number, err)
	}
}

func TestReclaimReplacesEarlierClaim(t *testing.T) {
	m := memory.New(memory.NewState("m", nil), time.Now)
	if _, _, err := m.Claim(t.Context(), storetest.App(1), "sc-9", nil); err != nil {
		t.Fatal(err)
	}
	homes := []statestore.ApplicationHome{
		{ID: storetest.App(1), Home: "sc-1"},
		{ID: storetest.App(2), Home: "sc-2"},
		{Home: "sc-1"},
	}
	conflicts, err := statestore.Reclaim(t.Context(), m, homes)
	if !errors.Is(err, creel.ErrInvalidRequest) || len(conflicts) != 1 || conflicts[0].Home != "sc-1" ||
		!slices.Equal(conflicts[0].Others, []creel.SubclusterID{"sc-9"}) {
		t.Fatalf("conflicts %v, error %v", conflicts, err)
	}
	for app, want := range map[int]creel.SubclusterID{1: "sc-1", 2: "sc-2"} {
		if is, err := m.Home(t.Context(), storetest.App(app)); err != nil || is != want {
			t.Fatalf("home of %d is %q, %v", app, is, err)
		}
	}
}
