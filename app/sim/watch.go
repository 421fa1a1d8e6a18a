// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
)

// watcher maintains a process's view of the federation, like statestore/watch: it reads the store at intervals, and
// at once after a notification. For both, subcluster.Observer computes the consequences of a read.
type watcher struct {
	w     *World
	at    *host
	trust bool // it has the cluster's secret, and accepts only members signed with it
	from  *trusted
	view  *subcluster.View
	table *policies.Table
	saw   func() // called for a changed view; may be nil
	// queues returns the leaf names of queues whose figures are needed; nil: all.
	queues func() []string

	reads, seen int // reads started, and the latest answered one
	due         int // number of scheduled full reads; each full read postpones the next
	// loads has the loads of the last read, by member, for a read without loads.
	loads map[creel.SubclusterID]subcluster.Record

	news bool // an announced plan has not been read
	plan watch.PlanReader
}

// start starts with an empty state; each boot calls it.
func (v *watcher) start() {
	v.view, v.table, v.from = nil, nil, nil
	v.news, v.plan, v.loads = false, watch.PlanReader{}, nil
	if v.trust {
		v.from = &trusted{Believer: subcluster.NewBeliever(v.w.signer), signer: v.w.signer}
	}
	v.read(true)
}

// read reads the store. Unless whole, partial loads stay as last read if nothing else of their members has changed,
// as in statestore/redis.
func (v *watcher) read(whole bool) {
	w := v.w
	v.reads++
	number := v.reads
	if whole = whole || v.queues == nil; whole {
		v.due++
		due := v.due
		w.on(v.at, w.cfg.Poll-w.cfg.Poll/5+time.Duration(w.rnd.Int64N(int64(2*w.cfg.Poll/5)+1)), func() {
			if v.due == due {
				v.read(true)
			}
		})
	}
	var queues []string
	if v.queues != nil {
		queues = v.queues()
	}
	plan := v.plan.Due(v.news, queues, w.now)
	v.news = v.news && !plan
	type seen struct {
		subcluster.Records
		plan statestore.Document
	}
	call(
		w,
		v.at,
		w.storeAt,
		readTime,
		func(reply func(seen, error)) {
			reply(atStore(w, false, func() (out seen, err error) {
				if v.queues != nil {
					out.Records = w.store.RecordsOf(w.storeClock(), queues)
				} else {
					out.Records = w.store.Records(w.storeClock())
				}
				if plan {
					out.plan, err = w.plan(v.queues != nil, queues)
				}
				return out, err
			}))
		},
		func(r seen, err error) {
			switch {
			case plan && number < v.seen:
				v.news = true // a later read was faster
			case plan:
				if err := v.plan.Read(r.plan, err, queues, w.now); err != nil {
					w.audit.breach("%v", err)
				}
			}
			r.Records.Plan = v.plan.Plan()
			if err == nil && number >= v.seen {
				r.Members = v.withLoads(r.Members, whole)
			}
			v.answered(number, r.Records, err)
		},
	)
}

// withLoads completes the members of a read without loads: members without another change get the loads of the last
// read.
func (v *watcher) withLoads(members []subcluster.Record, whole bool) []subcluster.Record {
	next := make(map[creel.SubclusterID]subcluster.Record, len(members))
	for i := range members {
		r := &members[i]
		was, known := v.loads[r.ID]
		if !whole && known && was.Registered.Equal(r.Registered) &&
			was.Draining == r.Draining && was.Deregistered == r.Deregistered {
			r.Load, r.Parsed = was.Load, was.Parsed
		}
		next[r.ID] = *r
	}
	v.loads = next
	return members
}

// tell notifies the store's subscribers of a change.
func (w *World) tell(c statestore.Change) {
	read, plan := watch.Hears(c)
	if !read || !w.cfg.planned() {
		return
	}
	for _, r := range w.routers {
		r.hears(plan)
	}
	for _, p := range slices.Concat(w.proxies, w.former) {
		p.hears(plan)
	}
	for _, c := range w.clusters {
		if c.others.reads > 0 {
			c.others.hears(plan)
		}
	}
}

// hears reads the store after a notification. A process that is cut off receives none, and finds changes by polling.
func (v *watcher) hears(plan bool) {
	if !v.at.up || v.w.apart(v.w.storeAt, v.at) {
		return
	}
	v.w.on(v.at, v.w.delay(), func() {
		v.news = v.news || plan
		v.read(false)
	})
}

// answered processes the result of a read. A result that a later read has overtaken is ignored. statestore/watch
// starts no read before the last has ended, and so never sees an older state after a newer one.
func (v *watcher) answered(number int, r subcluster.Records, err error) {
	if number < v.seen {
		return
	}
	v.seen = number
	w := v.w
	if v.from != nil && err == nil {
		r = v.from.believed(r)
	}
	o := subcluster.Observer{Longest: w.cfg.Poll + w.cfg.Poll/5 + readTime, Validate: validate}
	if next := o.Observe(v.view, r, err); next != nil {
		v.view = next
		w.audit.sees(v)
		v.table = policies.NewTable(v.table, next.Policies)
		if v.saw != nil {
			v.saw()
		}
	}
}

// readKeys reads the members' keys for tokens of nodes. The next look repeats a failed read.
func (v *watcher) readKeys(take func(opportune.Keys)) {
	w := v.w
	call(w, v.at, w.storeAt, readTime, func(reply func(opportune.Keys, error)) {
		reply(atStore(w, false, func() (opportune.Keys, error) { return maps.Clone(w.opportune.Published), nil }))
	}, func(k opportune.Keys, err error) {
		if err == nil {
			take(k)
		}
	})
}

// policy returns the policy that applies to a queue.
func (v *watcher) policy(q creel.QueuePath) policies.Policy {
	p, _ := v.table.For(q)
	return p
}

// readTime limits a read of the store.
const readTime = 5 * time.Second

// validate rejects a policy document that no process can use.
func validate(_ creel.QueuePath, document []byte) error {
	_, err := policies.Parse(document)
	return err
}
