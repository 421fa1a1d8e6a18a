// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/subcluster/rm"
)

// grantTable has one ResourceManager's grants of queues with a federation-wide maximum or user limit, in total and
// per user.
type grantTable map[creel.QueuePath]queueGrants

type queueGrants struct {
	all   creel.Resource
	users map[string]creel.Resource
}

// tree returns the federation's queue tree, nil if there is none or it cannot be parsed.
func (a *auditor) tree(ctx context.Context) *rebalancer.Tree {
	set, err := a.documents.Documents(ctx, rebalancer.TreeClass)
	if err != nil {
		return nil
	}
	doc, ok := set.Find(rebalancer.TreeName)
	if !ok {
		return nil
	}
	tree, err := rebalancer.ParseTree(doc.Data, doc.Version)
	if err != nil {
		a.broke("failed to read the federation's queue tree: %v", err)
		return nil
	}
	return tree
}

// maximum compares the grants of all ResourceManagers, in a queue and of a user in it, with the federation's maximum
// and user limit. All are of one moment: each ResourceManager is paused in turn until the last has been read. One
// that is down counts with its last known grants, because its containers keep running. If one does not answer in
// time, there is no such moment, and nothing is checked.
func (a *auditor) maximum(ctx context.Context, tree *rebalancer.Tree) {
	if tree == nil {
		return
	}
	n := len(a.fed.RMs)
	if a.granted == nil {
		a.granted = make([]grantTable, n)
	}
	limit, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	arrived, all := make(chan int, n), make(chan struct{})
	now := make([]grantTable, n)
	var asked sync.WaitGroup
	down := make([]bool, n)
	for i, daemon := range a.fed.RMs {
		asked.Go(func() {
			err := daemon.Service.Server.Query(limit, func(m *rm.Machine, _ time.Time) {
				now[i] = grantedBy(m, tree)
				arrived <- i
				select {
				case <-all:
				case <-limit.Done():
				}
			})
			if err != nil && limit.Err() == nil {
				down[i] = true
				arrived <- i
			}
		})
	}
	whole := true
	for range n {
		select {
		case <-arrived:
		case <-limit.Done():
			whole = false
		}
	}
	close(all)
	asked.Wait()
	if !whole {
		return
	}
	for i := range now {
		if !down[i] {
			a.granted[i] = now[i]
		}
	}
	for j := range tree.Queues {
		q := &tree.Queues[j]
		a.userLimit(q)
		if !q.Bounded() {
			continue
		}
		var sum creel.Resource
		for _, g := range a.granted {
			sum = sum.Add(g[q.Path].all)
		}
		a.maxima++
		a.fullest = max(a.fullest, float64(sum.MemoryMB)/float64(q.Maximum.MemoryMB))
		a.tally.Check(invariants.GlobalMaximum, string(q.Path), invariants.Within(sum, q.Maximum))
	}
}

func grantedBy(m *rm.Machine, tree *rebalancer.Tree) grantTable {
	out := grantTable{}
	for i := range tree.Queues {
		q := &tree.Queues[i]
		g := queueGrants{users: map[string]creel.Resource{}}
		g.all, _, _ = m.QueueUse(q.Path, "")
		if q.UserLimited() {
			for _, u := range m.UserUses(q.Path, "") {
				g.users[u.User] = u.Uses
			}
		}
		out[q.Path] = g
	}
	return out
}

// userLimit compares the grants of each user of a queue with the federation's limit.
func (a *auditor) userLimit(q *rebalancer.Queue) {
	if !q.UserLimited() {
		return
	}
	sums := map[string]creel.Resource{}
	for _, g := range a.granted {
		for user, used := range g[q.Path].users {
			sums[user] = sums[user].Add(used)
		}
	}
	for user, sum := range sums {
		a.maxima++
		a.fullest = max(a.fullest, float64(sum.MemoryMB)/float64(q.UserLimit.MemoryMB))
		of := string(q.Path) + ", user " + user
		a.tally.Check(invariants.UserLimits, of, invariants.Within(sum, q.UserLimit))
	}
}
