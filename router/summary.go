// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/subcluster"
)

// Summary is the state of the federation in one sentence and a few sums. The sums do not include lost members;
// Without lists these.
type Summary struct {
	State    Health
	Sentence string          // the worst finding with its cause, and the numbers of applications
	Remedy   string          // "" if there is nothing to do
	Holder   creel.QueuePath // queue that holds the room of the queue in Sentence; "" for other findings
	Members  map[string]int  // by state
	Sum      subcluster.ClusterMetrics
	Without  []UncountedMember
}

// Health grades a Summary.
type Health string

// The grades.
const (
	Good Health = "good" // nothing to do
	Warn Health = "warn" // it serves, but an operator should check it
	Bad  Health = "bad"  // a part of it does not serve
)

// UncountedMember is a member that is not in the sums.
type UncountedMember struct {
	Member creel.SubclusterID
	Age    time.Duration // of its last heartbeat
}

// Counted reports whether sums include a member's metrics: it is alive or suspect.
func Counted(m *subcluster.Status) bool {
	return m.State.Alive() || m.State == subcluster.StateSuspect
}

// sums returns the members by state, and a Summary with the sums alone.
func sums(view *subcluster.View) (s Summary, by map[subcluster.State][]creel.SubclusterID) {
	s.Members, by = map[string]int{}, map[subcluster.State][]creel.SubclusterID{}
	for i := range view.Members {
		m := &view.Members[i]
		s.Members[m.State.String()]++
		by[m.State] = append(by[m.State], m.ID)
		switch {
		case Counted(m):
			of := m.Load.Metrics // an application counts at its home
			of.AppsPending, of.AppsRunning = m.Load.UAMs.TakenFrom(of.AppsPending, of.AppsRunning)
			s.Sum = addMetrics(s.Sum, &of)
		case m.State != subcluster.StateDeregistered:
			s.Without = append(s.Without, UncountedMember{m.ID, m.Age})
		}
	}
	return s, by
}

func pick(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func count(n int64, one, many string) string {
	return units.Number(n) + " " + pick(int(n), one, many)
}

// names lists up to three members.
func names(ids []creel.SubclusterID) string {
	const most = 3
	text := ""
	for i, id := range ids[:min(len(ids), most)] {
		if i > 0 {
			text += ", "
		}
		text += string(id)
	}
	if more := len(ids) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// areNames is names with the verb.
func areNames(ids []creel.SubclusterID) string { return names(ids) + pick(len(ids), " is", " are") }

// addMetrics sums the additive metrics of two members.
func addMetrics(a subcluster.ClusterMetrics, b *subcluster.ClusterMetrics) subcluster.ClusterMetrics {
	add := func(sum *int64, n int64) { *sum = saturate(*sum, n) }
	add(&a.AppsSubmitted, b.AppsSubmitted)
	add(&a.AppsCompleted, b.AppsCompleted)
	add(&a.AppsPending, b.AppsPending)
	add(&a.AppsRunning, b.AppsRunning)
	add(&a.AppsFailed, b.AppsFailed)
	add(&a.AppsKilled, b.AppsKilled)
	add(&a.ReservedMB, b.ReservedMB)
	add(&a.AvailableMB, b.AvailableMB)
	add(&a.AllocatedMB, b.AllocatedMB)
	add(&a.PendingMB, b.PendingMB)
	add(&a.AvailableVirtualCores, b.AvailableVirtualCores)
	add(&a.AllocatedVirtualCores, b.AllocatedVirtualCores)
	add(&a.PendingVirtualCores, b.PendingVirtualCores)
	add(&a.ContainersAllocated, b.ContainersAllocated)
	add(&a.ContainersReserved, b.ContainersReserved)
	add(&a.ContainersPending, b.ContainersPending)
	add(&a.TotalMB, b.TotalMB)
	add(&a.TotalVirtualCores, b.TotalVirtualCores)
	add(&a.TotalNodes, b.TotalNodes)
	add(&a.LostNodes, b.LostNodes)
	add(&a.UnhealthyNodes, b.UnhealthyNodes)
	add(&a.DecommissioningNodes, b.DecommissioningNodes)
	add(&a.DecommissionedNodes, b.DecommissionedNodes)
	add(&a.ActiveNodes, b.ActiveNodes)
	add(&a.ContainersPerSecond, b.ContainersPerSecond)
	return a
}

// saturate returns a + b, limited to the range of int64: a member may report any numbers.
func saturate(a, b int64) int64 {
	return creel.Resource{MemoryMB: a}.Add(creel.Resource{MemoryMB: b}).MemoryMB
}
