// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Part is one member's answer to a question that went to several.
type Part[T any] struct {
	Member creel.SubclusterID
	Value  T
	Err    error // then Value says nothing
}

// Missing is a member whose answer a merged one lacks, and why.
type Missing struct {
	Member creel.SubclusterID
	Reason string
}

func (m Missing) String() string { return fmt.Sprintf("%s (%s)", m.Member, m.Reason) }

// MissingText joins missing members for a header or a diagnostic line.
func MissingText(missing []Missing) string {
	parts := make([]string, len(missing))
	for i, m := range missing {
		parts[i] = m.String()
	}
	return strings.Join(parts, "; ")
}

// Present splits parts into those that answered, in order of member, and those
// that did not.
func Present[T any](parts []Part[T]) (present []Part[T], missing []Missing) {
	sorted := slices.SortedStableFunc(
		slices.Values(parts),
		func(a, b Part[T]) int { return cmp.Compare(a.Member, b.Member) },
	)
	for _, p := range sorted {
		if p.Err != nil {
			missing = append(missing, Missing{p.Member, p.Err.Error()})
			continue
		}
		present = append(present, p)
	}
	return present, missing
}

// AppFields reads what the merge rule of applications needs from a report in
// whatever form a door has it.
type AppFields[T any] struct {
	ID        func(T) creel.ApplicationID
	Unmanaged func(T) bool
	Start     func(T) int64 // ms
	// Add adds the use (containers, resources, resource-seconds) of a twin to
	// the report of its home and returns the sum; it must not change its first
	// argument in place unless it owns it.
	Add func(home, twin T) T
}

// MergeApps makes one list of the members' lists. An application that several
// members report has its home and its unmanaged twins: one entry is kept, the
// home's, with the twins' use added. The home is the one that home names; where
// it does not know, the managed report; and of several unmanaged ones the one
// that started first. The list is ordered by id, newest first, as a
// ResourceManager's web page shows it; limit 0 keeps all.
//
// home may be nil. It is asked once for each application that more than one
// member reports, so the common list costs no lookup.
func MergeApps[T any](
	parts []Part[[]T],
	f AppFields[T],
	home func(creel.ApplicationID) (creel.SubclusterID, bool),
	limit int,
) (merged []T, missing []Missing) {
	present, missing := Present(parts)
	type entry struct {
		member creel.SubclusterID
		report T
	}
	byID := map[creel.ApplicationID][]entry{}
	var order []creel.ApplicationID
	for _, p := range present {
		for _, r := range p.Value {
			id := f.ID(r)
			if _, seen := byID[id]; !seen {
				order = append(order, id)
			}
			byID[id] = append(byID[id], entry{p.Member, r})
		}
	}
	slices.SortFunc(order, func(a, b creel.ApplicationID) int { return b.Compare(a) })
	for _, id := range order {
		if limit > 0 && len(merged) == limit {
			break
		}
		entries := byID[id]
		if len(entries) == 1 {
			merged = append(merged, entries[0].report)
			continue
		}
		first := 0
		if at, ok := homeOf(
			home,
			id,
		); ok &&
			slices.ContainsFunc(entries, func(e entry) bool { return e.member == at }) {
			first = slices.IndexFunc(entries, func(e entry) bool { return e.member == at })
		} else {
			for i, e := range entries {
				best := entries[first]
				if f.Unmanaged(best.report) != f.Unmanaged(e.report) {
					if f.Unmanaged(best.report) {
						first = i
					}
				} else if f.Start(e.report) < f.Start(best.report) {
					first = i
				}
			}
		}
		report := entries[first].report
		for i, e := range entries {
			if i != first && f.Add != nil {
				report = f.Add(report, e.report)
			}
		}
		merged = append(merged, report)
	}
	return merged, missing
}

func homeOf(
	home func(creel.ApplicationID) (creel.SubclusterID, bool),
	id creel.ApplicationID,
) (creel.SubclusterID, bool) {
	if home == nil {
		return "", false
	}
	return home(id)
}

// MergeNodes makes one list of the members' nodes. A node that two members
// report (it moved, and the old one does not know yet) is kept once, as the
// member says that heard of it last. Ordered by id.
func MergeNodes[T any](
	parts []Part[[]T],
	id func(T) creel.NodeID,
	heard func(T) int64,
) (merged []T, missing []Missing) {
	present, missing := Present(parts)
	at := map[creel.NodeID]int{}
	for _, p := range present {
		for _, n := range p.Value {
			if i, seen := at[id(n)]; seen {
				if heard(n) > heard(merged[i]) {
					merged[i] = n
				}
				continue
			}
			at[id(n)] = len(merged)
			merged = append(merged, n)
		}
	}
	slices.SortStableFunc(merged, func(a, b T) int { return id(a).Compare(id(b)) })
	return merged, missing
}

// MergeMetrics adds the members' cluster metrics. Percentages are weighted by
// the capacity they are of; the busy percentage is the worst, since a caller
// who waits waits for the slowest.
func MergeMetrics(parts []Part[subcluster.ClusterMetrics]) (sum subcluster.ClusterMetrics, missing []Missing) {
	present, missing := Present(parts)
	sum.SchedulerBusyPercent = -1
	var memory, cores float64 // utilised, in the members' own units times 100
	for _, p := range present {
		m := p.Value
		sum.AppsSubmitted += m.AppsSubmitted
		sum.AppsCompleted += m.AppsCompleted
		sum.AppsPending += m.AppsPending
		sum.AppsRunning += m.AppsRunning
		sum.AppsFailed += m.AppsFailed
		sum.AppsKilled += m.AppsKilled
		sum.ReservedMB += m.ReservedMB
		sum.AvailableMB += m.AvailableMB
		sum.AllocatedMB += m.AllocatedMB
		sum.PendingMB += m.PendingMB
		sum.ReservedVirtualCores += m.ReservedVirtualCores
		sum.AvailableVirtualCores += m.AvailableVirtualCores
		sum.AllocatedVirtualCores += m.AllocatedVirtualCores
		sum.PendingVirtualCores += m.PendingVirtualCores
		sum.ContainersAllocated += m.ContainersAllocated
		sum.ContainersReserved += m.ContainersReserved
		sum.ContainersPending += m.ContainersPending
		sum.TotalMB += m.TotalMB
		sum.UtilizedMB += m.UtilizedMB
		sum.TotalVirtualCores += m.TotalVirtualCores
		sum.UtilizedVirtualCores += m.UtilizedVirtualCores
		memory += float64(m.UtilizedMBPercent) * float64(m.TotalMB)
		cores += float64(m.UtilizedVirtualCoresPercent) * float64(m.TotalVirtualCores)
		sum.SchedulerBusyPercent = max(sum.SchedulerBusyPercent, m.SchedulerBusyPercent)
		sum.TotalNodes += m.TotalNodes
		sum.LostNodes += m.LostNodes
		sum.UnhealthyNodes += m.UnhealthyNodes
		sum.DecommissioningNodes += m.DecommissioningNodes
		sum.DecommissionedNodes += m.DecommissionedNodes
		sum.RebootedNodes += m.RebootedNodes
		sum.ActiveNodes += m.ActiveNodes
		sum.ShutdownNodes += m.ShutdownNodes
		sum.ContainersPerSecond += m.ContainersPerSecond
	}
	if sum.TotalMB > 0 {
		sum.UtilizedMBPercent = int64(memory / float64(sum.TotalMB))
	}
	if sum.TotalVirtualCores > 0 {
		sum.UtilizedVirtualCoresPercent = int64(cores / float64(sum.TotalVirtualCores))
	}
	return sum, missing
}

// Mean is a capacity-weighted mean of one fraction over members: what a
// queue's capacity, maximum or use is of the whole federation. Members of
// weight 0 do not count; all of weight 0 count alike.
func Mean(values, weights []float64) float64 {
	total, sum, plain := 0.0, 0.0, 0.0
	for i, v := range values {
		total += weights[i]
		sum += v * weights[i]
		plain += v
	}
	switch {
	case total > 0:
		return sum / total
	case len(values) > 0:
		return plain / float64(len(values))
	}
	return 0
}
