// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
)

// auditor checks every ResourceManager of a running federation: its invariants, its number of ended applications, and
// how far its queues are from their federation-wide guarantees. It is not safe for concurrent use.
type auditor struct {
	fed             *federation.Federation
	ended, running  int64
	checked, broken int64
	owed            map[creel.QueuePath]float64 // unmet parts of guarantees at the previous look, as shares
	from, to        time.Time                   // room and shortfalls are measured between them; zero: always
	errors          []float64                   // shortfalls, one for each queue and look with an unmet entitlement
	looks, full     int                         // number of looks, and of looks with hardly any free resources
	inUse           float64                     // sum of the looks' fractions in use
	texts           []string
	each            []counted // last known, by subcluster

	documents statestore.Documents // the federation's queue tree
	granted   []grantTable         // last known, by subcluster
	maxima    int64                // number of checks against maxima
	fullest   float64              // highest use of any maximum, as a fraction
	also      func() error         // if not nil, called at each look
	tally     invariants.Tally     // of the federation's invariants
}

// counted has the numbers of one subcluster.
type counted struct {
	ended, running int64
	lent, killed   int64 // opportunistic containers granted, and killed by nodes
}

// fullShare is the fraction of all resources in use from which a look counts as full.
const fullShare = 0.98

func newAuditor(fed *federation.Federation, documents statestore.Documents) *auditor {
	a := &auditor{fed: fed, documents: documents, each: make([]counted, len(fed.RMs))}
	a.tally.Tell = func(i invariants.Invariant, of string, breach error) { a.broke("%s of %s: %v", i, of, breach) }
	return a
}

func (a *auditor) broke(format string, args ...any) {
	a.broken++
	if len(a.texts) < 20 {
		a.texts = append(a.texts, fmt.Sprintf(format, args...))
	}
}

// queueUse is one queue over all subclusters.
type queueUse struct {
	guaranteed, used, demand creel.Resource
	// needs has each user's use plus pending asks. An application that waits for its AM has no asks yet.
	needs map[string]creel.Resource
}

// look queries all ResourceManagers once. For one that is down, the last counts remain.
func (a *auditor) look(ctx context.Context) {
	queues := map[creel.QueuePath]*queueUse{}
	var total, used creel.Resource
	for i, daemon := range a.fed.RMs {
		ask, cancel := context.WithTimeout(ctx, 2*time.Second)
		var broken error
		var now counted
		sums := map[creel.QueuePath]creel.Resource{} // of the use of descendant queues
		var parents []rm.QueueView
		var living []*rm.AppView
		err := daemon.Service.Server.Query(ask, func(m *rm.Machine, _ time.Time) {
			broken = m.Audit()
			for v := range m.Apps {
				switch {
				case v.Unmanaged:
				case v.State.Ended():
					now.ended++
				default:
					now.running++
				}
				if !v.Over {
					living = append(living, v)
				}
			}
			if lent, on := m.Opportunistic(); on {
				now.lent = lent.Granted
				for _, n := range lent.Killed {
					now.killed += n
				}
			}
			cluster := m.Cluster()
			total, used = total.Add(cluster.Total), used.Add(cluster.Used)
			for q := range m.Queues {
				sums[q.Parent] = sums[q.Parent].Add(q.Used)
				if !q.Leaf {
					parents = append(parents, q)
					continue
				}
				u := queues[q.Path]
				if u == nil {
					u = &queueUse{needs: map[string]creel.Resource{}}
					queues[q.Path] = u
				}
				u.guaranteed = u.guaranteed.Add(q.Guaranteed)
				u.used = u.used.Add(q.Used)
				u.demand = u.demand.Add(q.Used).Add(q.Pending)
			}
			for _, v := range living {
				if u := queues[v.Queue]; u != nil {
					u.needs[v.User] = u.needs[v.User].Add(v.Used).Add(v.Pending)
				}
			}
		})
		cancel()
		if err != nil {
			continue // down or busy: its invariants are checked when it is back
		}
		a.each[i] = now
		a.checked++
		if broken != nil {
			a.broke("sc-%d: %v", i+1, broken)
		}
		for _, q := range parents {
			of := fmt.Sprintf("%s in sc-%d", q.Path, i+1)
			a.tally.Check(invariants.ParentConsistency, of, invariants.Children(q.Used, sums[q.Path]))
		}
	}
	tree := a.tree(ctx)
	a.maximum(ctx, tree)
	a.ended, a.running = 0, 0
	for _, e := range a.each {
		a.ended += e.ended
		a.running += e.running
	}
	if a.also != nil {
		if err := a.also(); err != nil {
			a.broke("%v", err)
		}
	}
	now := time.Now()
	if share := used.Dominant(total); total.MemoryMB > 0 && a.counts(now) {
		a.looks++
		a.inUse += share
		if share >= fullShare {
			a.full++
		}
	}
	byDocument(queues, tree)
	withinLimits(queues, tree)
	a.shortfalls(queues, total, now)
}

// byDocument sets a queue's guarantee from the federation's queue tree, in place of the sum of its capacities in the
// members, which follow the plan.
func byDocument(queues map[creel.QueuePath]*queueUse, tree *rebalancer.Tree) {
	if tree == nil {
		return
	}
	for path, u := range queues {
		if q := tree.Find(path); q != nil && !q.Guarantee.IsZero() {
			u.guaranteed = q.Guarantee
		}
	}
}

// withinLimits reduces demand to the part that the federation's user limits permit.
func withinLimits(queues map[creel.QueuePath]*queueUse, tree *rebalancer.Tree) {
	if tree == nil {
		return
	}
	for path, u := range queues {
		if q := tree.Find(path); q != nil && q.UserLimited() {
			u.demand = u.demand.Min(q.WithinLimit(u.needs)).Max(u.used)
		}
	}
}

// counts reports whether a look at this time counts for the figures.
func (a *auditor) counts(at time.Time) bool {
	return !at.Before(a.from) && (a.to.IsZero() || at.Before(a.to))
}

// shortfalls compares each queue's use with a part of its entitlement: the part that was already due at the previous
// look and still is. A container requested a moment ago is not late.
func (a *auditor) shortfalls(queues map[creel.QueuePath]*queueUse, total creel.Resource, at time.Time) {
	before := a.owed
	counts := a.counts(at)
	a.owed = make(map[creel.QueuePath]float64, len(queues))
	for path, u := range queues {
		a.owed[path], _ = invariants.Owed(u.guaranteed, u.demand, u.used, total)
		if owed := min(before[path], a.owed[path]); owed > 0 && counts {
			a.errors = append(a.errors, max(0, owed-u.used.Dominant(total))/owed)
		}
	}
}

// fill writes the results into a summary.
func (a *auditor) fill(s *Summary, out io.Writer) {
	checked, _ := a.tally.All() // broken invariants are printed and counted
	s.Invariants.Checked, s.Invariants.Broken = a.checked+checked, a.broken
	s.Maximum.Checked, s.Maximum.Fullest = a.maxima, a.fullest
	for _, e := range a.each {
		s.Opportunistic.Granted += e.lent
		s.Opportunistic.Killed += e.killed
	}
	for _, text := range a.texts {
		fmt.Fprintln(out, "broken:", text)
	}
	if a.looks > 0 {
		s.Room.InUse, s.Room.Looks, s.Room.Full = a.inUse/float64(a.looks), a.looks, a.full
	}
	s.EntitlementError.Samples = len(a.errors)
	if len(a.errors) == 0 {
		return
	}
	slices.Sort(a.errors)
	sum := 0.0
	for _, e := range a.errors {
		sum += e
	}
	s.EntitlementError.Mean = sum / float64(len(a.errors))
	s.EntitlementError.P99 = a.errors[min(len(a.errors)-1, len(a.errors)*99/100)]
}
