// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// keepEvery is the time between two rounds of a keeper, and keepRecovery how long after a
// start a part is not lowered: the daemon's defaults.
const keepEvery, keepRecovery = 500 * time.Millisecond, time.Minute

// escrowStore is the store as a flow of a keeper reaches it.
type escrowStore struct{ documents }

func (d escrowStore) Records(context.Context) (subcluster.Records, error) {
	w := d.f.w
	return ask(d.f, w.storeAt, readTime, func(reply func(subcluster.Records, error)) {
		reply(atStore(w, false, func() (subcluster.Records, error) { return w.store.Records(w.storeClock()), nil }))
	})
}

// flowAccess is the interface to a ResourceManager's process for the daemon's drivers within a flow: the state store,
// and the turns of the owner.
type flowAccess struct {
	escrowStore
	c *cluster
}

// escrowKeeper runs the daemon's driver that keeps a ResourceManager's queues within their parts of federation-wide
// maxima, one round at a time.
type escrowKeeper struct {
	flowAccess
	keeper *server.Keeper
	begun  bool
}

// keep begins it, with the ResourceManager.
func (c *cluster) keep() {
	if c.w.cfg.Tree == nil {
		return
	}
	k := &escrowKeeper{flowAccess: flowAccess{c: c}}
	k.keeper = &server.Keeper{
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
			_ = k.keeper.Round(f) // the next one comes
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
