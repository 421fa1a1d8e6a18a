// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Part is one member's answer to a question that went to several.
type Part[T any] struct {
	Member creel.SubclusterID
	Value  T
	Err    error // if set, Value is meaningless
}

// MissingMember is a member whose answer a merged one lacks, and why.
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

// Present splits parts into those that answered, in order of member, and those
// that did not.
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

// AppFields reads the fields that the merge rule of applications needs from a report in any protocol's form.
type AppFields[T any] struct {
	ID        func(T) creel.ApplicationID
	Unmanaged func(T) bool
	Start     func(T) int64 // ms
	// Part reports whether a report is of a UAM (creel.IsUAM) and so not of an application. One whose home reported
	// nothing is left out; nil keeps those, too.
	Part func(T) bool
	// Join makes one report of the home's, which comes first, and its UAMs', of at least two.
	Join func([]Part[T]) T
}

// UAMOf returns the application of a report that is of a UAM with an id of its own; false for any other report.
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

// MergeApps makes one list of the members' lists. An application that several members report has its home and its
// UAMs: they become one entry. The home is the one that home returns; if that does not know, the managed report; and
// of several unmanaged ones the one that started first. UAMs alone are no application: their home is away, or the
// filter excludes its report. The list is ordered by id, newest first, as on a ResourceManager's web page; limit 0
// returns all.
//
// home may be nil. It is called once for each application that more than one member reports, so the common list costs
// no lookup.
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
	var same []Part[T] // the reports of one
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

// homeFirst puts the report that counts of one application's before the others:
// see MergeApps.
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

// MergeNodes makes one list of the members' nodes. A node that two members report (it moved, and the old one does not
// know yet) is kept once, in the report of the member with the latest heartbeat from it. Ordered by id.
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
