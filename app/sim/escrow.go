// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/member"
	"github.com/creelrm/creel/subcluster/rm"
)

// keepEvery is the time between two rounds of a keeper. keepRecovery is the time after a start in which a part is not
// lowered. Both are the daemon's defaults.
const keepEvery, keepRecovery = 500 * time.Millisecond, time.Minute

// escrowStore is the store for a keeper's flow.
type escrowStore struct{ documents }

func (d escrowStore) Records(context.Context) (subcluster.Records, error) {
	w := d.f.w
	return ask(d.f, w.storeAt, readTime, func(reply func(subcluster.Records, error)) {
		reply(atStore(w, false, func() (subcluster.Records, error) { return w.store.Records(w.storeClock()), nil }))
	})
}

// flowAccess gives the daemon's drivers, within a flow, access to the state store and to the turns of a
// ResourceManager's owner.
type flowAccess struct {
	escrowStore
	c *cluster
}

// escrowKeeper runs the daemon's driver that enforces a ResourceManager's parts of federation-wide maxima, one round
// at a time.
type escrowKeeper struct {
	flowAccess
	keeper *member.Keeper
	begun  bool
}

// keep starts it, with the ResourceManager.
func (c *cluster) keep() {
	if c.w.cfg.Tree == nil {
		return
	}
	k := &escrowKeeper{flowAccess: flowAccess{c: c}}
	k.keeper = &member.Keeper{
		ID: c.id, Epoch: c.start.UnixMilli(), Store: k, Turn: k.turn, Every: keepEvery, Terms: escrow.DefaultTerms(),
		Recover: keepRecovery,
	}
	k.keeper.Clock.Read = func() time.Time { return c.w.now } // as a monotonic clock
	k.round()
}

func (k *escrowKeeper) round() {
	w, began := k.c.w, k.c.w.now
	w.start(k.c.host, escrow.DefaultTerms().Lease/3, func(f *flow) {
		if k.f = f; !k.begun {
			k.begun = k.keeper.Begin(f) == nil
		}
		if k.begun {
			_ = k.keeper.Round(f) // the next round repeats it
		}
	}, func() {
		w.on(k.c.host, max(0, keepEvery-w.now.Sub(began)), k.round)
	})
}

// turn is a turn of the ResourceManager's owner.
func (b *flowAccess) turn(_ context.Context, do func(m *rm.Machine, now time.Time)) error {
	alive := b.f.pause(func(resume func()) {
		b.c.post(func(m *rm.Machine, now time.Time) func() {
			do(m, now)
			b.c.w.on(b.c.host, 0, resume)
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
