// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// keepEvery is the time between two rounds of a keeper, and keepRecovery how long after a
// start a part is not lowered: the daemon's defaults.
const keepEvery, keepRecovery = 500 * time.Millisecond, time.Minute

// keptStore is the store as a flow of a keeper reaches it.
type keptStore struct{ documents }

func (d keptStore) Records(context.Context) (subcluster.Records, error) {
	w := d.f.w
	return ask(d.f, w.storeAt, readTime, func(reply func(subcluster.Records, error)) {
		reply(atStore(w, false, func() (subcluster.Records, error) { return w.store.Records(w.storeClock()), nil }))
	})
}

// keeping is what keeps the queues of a ResourceManager within their parts of federation-wide
// maxima: the daemon's driver, a round at a time.
type keeping struct {
	keptStore
	c      *cluster
	keeper *server.Keeper
	begun  bool
}

// keep begins it, with the ResourceManager.
func (c *cluster) keep() {
	if c.w.cfg.Tree == nil {
		return
	}
	k := &keeping{c: c}
	k.keeper = &server.Keeper{
		ID: c.id, Epoch: c.start.UnixMilli(), Store: k, Turn: k.turn, Every: keepEvery, Terms: escrow.DefaultTerms(),
		Recover: keepRecovery,
	}
	k.keeper.Clock.Read = func() time.Time { return c.w.now } // as a monotonic clock
	k.round()
}

func (k *keeping) round() {
	w, began := k.c.w, k.c.w.now
	w.start(k.c.host, escrow.DefaultTerms().Lease/3, func(f *flow) {
		if k.f = f; !k.begun {
			k.begun = k.keeper.Begin(f) == nil
		}
		if k.begun {
			_ = k.keeper.Round(f) // the next one comes
		}
	}, func() {
		w.on(k.c.host, max(0, keepEvery-w.now.Sub(began)), k.round)
	})
}

// turn is a turn of the ResourceManager's owner.
func (k *keeping) turn(_ context.Context, do func(m *rm.Machine, now time.Time)) error {
	alive := k.f.pause(func(resume func()) {
		k.c.post(func(m *rm.Machine, now time.Time) func() {
			do(m, now)
			k.c.w.on(k.c.host, 0, resume)
			return nil
		})
	})
	if !alive {
		return errReset
	}
	return nil
}

// putTree writes the federation's queue tree.
func (w *World) putTree() error {
	if w.cfg.Tree == nil {
		return nil
	}
	data, err := w.cfg.Tree.Encode()
	if err != nil {
		return err
	}
	_, err = w.store.PutDocument(w.storeClock(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Data: data, Author: "sim",
	})
	return err
}

// bounded holds maxima and user limits over what all ResourceManagers together granted,
// after each event that may have granted something. A ResourceManager that is down counts
// with what it had granted: that runs on. (That queues sum to those above them is
// rm.Auditor's to see.)
func (a *auditor) bounded(c *cluster) {
	if a.w.cfg.Tree == nil {
		return
	}
	granted := c.m.Cluster().Granted
	if granted == c.grantedBefore && a.w.cfg.Faults == nil {
		return
	}
	c.grantedBefore = granted
	for i := range a.w.cfg.Tree.Queues {
		q := &a.w.cfg.Tree.Queues[i]
		if q.Bounded() {
			var sum creel.Resource
			for _, o := range a.w.clusters {
				used, _, _ := o.m.QueueUse(q.Path)
				sum = sum.Add(used)
			}
			for _, o := range a.w.clusters {
				if sum.Fits(q.Maximum) {
					break
				}
				v, _ := o.m.Queue(string(q.Path)) // what is reserved is not granted yet
				sum = sum.Sub(v.Reserved)
			}
			a.fullest = max(a.fullest, float64(sum.MemoryMB)/float64(q.Maximum.MemoryMB))
			a.holds(invariants.GlobalMaximum, string(q.Path), invariants.Within(c.counted(sum), q.Maximum))
		}
		if q.UserLimited() {
			sums := map[string]creel.Resource{}
			for _, o := range a.w.clusters {
				for _, u := range o.m.UserUses(q.Path) {
					sums[u.User] = sums[u.User].Add(u.Uses)
				}
			}
			for user, sum := range sums {
				of := string(q.Path) + ", user " + user
				a.holds(invariants.UserLimits, of, invariants.Within(c.counted(sum), q.UserLimit))
			}
		}
	}
}

func (a *auditor) holds(i invariants.Invariant, of string, breach error) {
	a.tally.Check(i, of, breach)
	a.check(breach == nil, "%s of %s: %v", i, of, breach)
}

// roomTold holds what an AM is told as headroom against what its queue may still use, at
// the moment in which it is told: in each queue up to the root here, what is reserved
// counted as used, and of the federation's maxima and user limits in all members together.
func (a *auditor) roomTold(c *cluster, queue creel.QueuePath, user string, told creel.Resource) {
	told = c.counted(told)
	for path := queue; path != ""; path = path.Parent() {
		v, ok := c.m.Queue(string(path))
		if !ok {
			return // it was deleted, and the application goes
		}
		has := v.Max.Sub(v.Used).Sub(v.Reserved)
		a.holds(invariants.TrueHeadroom, string(path)+" in "+string(c.id), invariants.Room(told, has))
	}
	if a.w.cfg.Tree == nil {
		return
	}
	for i := range a.w.cfg.Tree.Queues {
		q := &a.w.cfg.Tree.Queues[i]
		if q.Path != queue && !q.Path.IsAncestorOf(queue) {
			continue
		}
		used, ofUser := a.usedOf(q, user)
		if q.Bounded() {
			a.holds(invariants.TrueHeadroom, string(q.Path), invariants.Room(told, q.Maximum.Sub(used)))
		}
		if q.UserLimited() && q.Path == queue {
			of := string(q.Path) + ", user " + user
			a.holds(invariants.TrueHeadroom, of, invariants.Room(told, q.UserLimit.Sub(ofUser)))
		}
	}
}

// usedOf is what all members together use of a queue, with what is reserved, and what a
// user uses of it.
func (a *auditor) usedOf(q *rebalancer.Queue, user string) (all, one creel.Resource) {
	for _, c := range a.w.clusters {
		if q.Bounded() {
			used, _, _ := c.m.QueueUse(q.Path)
			all = all.Add(used)
		}
		if q.UserLimited() {
			for _, u := range c.m.UserUses(q.Path) {
				if u.User == user {
					one = one.Add(u.Uses)
				}
			}
		}
	}
	return all, one
}
