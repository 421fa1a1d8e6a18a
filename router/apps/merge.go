// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/snapshot"
)

// Part is a member's part of the list.
type Part = snapshot.Part[*Row]

// rowFields reads the fields of a row that router.MergeApps needs, and merges an application's rows at its home and its
// UAMs' members.
var rowFields = router.AppFields[*Row]{
	ID:        func(a *Row) creel.ApplicationID { return a.id },
	Unmanaged: func(a *Row) bool { return a.Unmanaged },
	Start:     func(a *Row) int64 { return a.Started },
	Part:      func(a *Row) bool { return creel.IsUAM(a.Unmanaged, a.Name, a.Tags) },
	Join: func(same []router.Part[*Row]) *Row {
		a := *same[0].Value
		// Home decides the rights to all parts. It sends a viewer without permission no start.
		denied := a.own && a.Started == 0
		for _, p := range same[1:] {
			if p.Member != a.from && !slices.Contains(a.Elsewhere, p.Member) { // it may have had earlier UAMs there
				a.Elsewhere = append(a.Elsewhere, p.Member)
			}
			uam := p.Value
			if denied && !uam.own {
				uam = guarded(uam)
			}
			a.Containers += uam.Containers
			a.MemoryMB += uam.MemoryMB
			a.VCores += uam.VCores
			if uam.rank == waiting && a.rank == running { // home has granted all, and the UAM waits
				a.rank, a.Waits, a.WaitsIn = waiting, uam.Waits, uam.WaitsIn
				a.waits = uam.waits
			} else if a.rank == waiting && !uam.waits.IsZero() && uam.waits.Before(a.waits) {
				a.waits = uam.waits
			}
		}
		return &a
	},
}

// merge lists the applications of all members, each once. Running ones come first, then waiting ones, then ended ones,
// each sorted newest first. home returns remembered homes.
func merge(parts []Part, home func(creel.ApplicationID) (creel.SubclusterID, bool)) []*Row {
	lists := make([]router.Part[[]*Row], len(parts))
	for i := range parts {
		lists[i] = router.Part[[]*Row]{Member: parts[i].Member, Value: parts[i].Items}
		if parts[i].Err == nil {
			continue
		}
		lists[i].Value = make([]*Row, len(parts[i].Items))
		for j, a := range parts[i].Items {
			old := *a
			old.at = parts[i].At
			lists[i].Value[j] = &old
		}
	}
	rows, _ := router.MergeApps(lists, rowFields, home, 0)
	slices.SortStableFunc(rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.Started, a.Started), b.id.Compare(a.id))
	})
	return rows
}
