// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Part is one member's answer to a call to several members.
type Part[T any] struct {
	Member creel.SubclusterID
	Value  T
	Err    error // if set, Value is meaningless
}

// MissingMember is a member whose answer is missing in a merged answer, and the reason.
type MissingMember struct {
	Member creel.SubclusterID
	Reason string
}

func (m MissingMember) String() string { return fmt.Sprintf("%s (%s)", m.Member, m.Reason) }

// MissingText joins missing members for a header or a diagnostic line.
func MissingText(missing []MissingMember) string {
	parts := make([]string, len(missing))
	for i, m := range missing {
		parts[i] = m.String()
	}
	return strings.Join(parts, "; ")
}

// Present splits parts into the answers, sorted by member, and the members that did not answer.
func Present[T any](parts []Part[T]) (present []Part[T], missing []MissingMember) {
	sorted := slices.SortedStableFunc(
		slices.Values(parts),
		func(a, b Part[T]) int { return cmp.Compare(a.Member, b.Member) },
	)
	for _, p := range sorted {
		if p.Err != nil {
			missing = append(missing, MissingMember{p.Member, p.Err.Error()})
			continue
		}
		present = append(present, p)
	}
	return present, missing
}

// AppFields reads the fields of a report that MergeApps needs, for the report's protocol.
type AppFields[T any] struct {
	ID        func(T) creel.ApplicationID
	Unmanaged func(T) bool
	Start     func(T) int64 // ms
	// Part reports whether a report is of a UAM (creel.IsUAM), not of an application. UAMs without a report from
	// their home are left out; with nil they stay.
	Part func(T) bool
	// Join merges at least two reports of an application into one: home's, which comes first, and its UAMs'.
	Join func([]Part[T]) T
}

// UAMOf returns the application of a UAM that has another id than its application; false for any other report.
func UAMOf(unmanaged bool, tags []string) (creel.ApplicationID, bool) {
	if unmanaged {
		for _, t := range tags {
			if app, ok := creel.TaggedUAM(t); ok {
				return app, true
			}
		}
	}
	return creel.ApplicationID{}, false
}

// MergeApps merges the members' lists into one. Several members may report an application: its home and the members
// of its UAMs. These reports become one entry. Its home is the member that home returns. If home returns none, it is
// the member with the managed report, or else the one with the earliest start. UAMs without their home's report make
// no entry: home is away, or the filter excludes its report. The list is ordered by id, newest first, as on a
// ResourceManager's web page; limit 0 returns all.
//
// home may be nil. It is called once for each application with several reports, so the common list costs no lookup.
func MergeApps[T any](
	parts []Part[[]T],
	f AppFields[T],
	home func(creel.ApplicationID) (creel.SubclusterID, bool),
	limit int,
) (merged []T, missing []MissingMember) {
	present, missing := Present(parts)
	type entry struct {
		id   creel.ApplicationID
		part int // into present
		item int
	}
	total := 0
	for _, p := range present {
		total += len(p.Value)
	}
	all := make([]entry, 0, total)
	for i, p := range present {
		for j, r := range p.Value {
			all = append(all, entry{f.ID(r), i, j})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return b.id.Compare(a.id) })
	if limit <= 0 {
		limit = total
	}
	merged = make([]T, 0, min(total, limit))
	var same []Part[T] // the reports of one application
	for len(all) > 0 && len(merged) < limit {
		n := 1
		for n < len(all) && all[n].id == all[0].id {
			n++
		}
		same = same[:0]
		parts := 0
		for _, e := range all[:n] {
			r := present[e.part].Value[e.item]
			if same = append(same, Part[T]{Member: present[e.part].Member, Value: r}); f.Part != nil && f.Part(r) {
				parts++
			}
		}
		switch {
		case parts == n:
		case n == 1:
			merged = append(merged, same[0].Value)
		default:
			homeFirst(all[0].id, same, f, home)
			merged = append(merged, f.Join(same))
		}
		all = all[n:]
	}
	return merged, missing
}

// homeFirst moves home's report of an application before the others: see MergeApps.
func homeFirst[T any](
	id creel.ApplicationID,
	same []Part[T],
	f AppFields[T],
	home func(creel.ApplicationID) (creel.SubclusterID, bool),
) {
	best := -1
	if home != nil {
		if at, ok := home(id); ok {
			best = slices.IndexFunc(same, func(p Part[T]) bool { return p.Member == at })
		}
	}
	if best < 0 {
		best = 0
		for i := 1; i < len(same); i++ {
			kept, other := same[best].Value, same[i].Value
			if f.Part != nil && f.Part(kept) != f.Part(other) {
				if f.Part(kept) {
					best = i
				}
			} else if f.Unmanaged(kept) != f.Unmanaged(other) {
				if f.Unmanaged(kept) {
					best = i
				}
			} else if f.Start(other) < f.Start(kept) {
				best = i
			}
		}
	}
	same[0], same[best] = same[best], same[0]
}

// MergeNodes merges the members' lists of nodes into one, ordered by id. Two members may report a node that has just
// moved. The list has it once, in the report of the member with the node's latest heartbeat.
func MergeNodes[T any](
	parts []Part[[]T],
	id func(T) creel.NodeID,
	heard func(T) int64,
) (merged []T, missing []MissingMember) {
	present, missing := Present(parts)
	type entry struct {
		id   creel.NodeID
		node T
	}
	var all []entry
	for _, p := range present {
		for _, n := range p.Value {
			all = append(all, entry{id(n), n})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.id.Compare(b.id) })
	merged = make([]T, 0, len(all))
	for i, e := range all {
		switch last := len(merged) - 1; {
		case i == 0 || all[i-1].id != e.id:
			merged = append(merged, e.node)
		case heard(e.node) > heard(merged[last]):
			merged[last] = e.node
		}
	}
	return merged, missing
}
