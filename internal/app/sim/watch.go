// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// watcher keeps a process's view of the federation: it reads the store now and
// then. What follows from a read is subcluster.Observer's to say, for
// statestore/watch too; the store's subscription is not simulated.
type watcher struct {
	w     *World
	at    *host
	trust bool // it has the cluster's secret, and believes what is signed under it alone
	from  *trusted
	view  *subcluster.View
	table *policies.Table
	saw   func() // another view; nil for nobody to tell
	// queues are those of which figures are wanted, by leaf name; nil: of all.
	queues func() []string

	reads, seen int // begun, and the latest that was answered
}

// start begins with nothing seen; it is called at each boot.
func (v *watcher) start() {
	v.view, v.table, v.from = nil, nil, nil
	if v.trust {
		v.from = &trusted{Believer: subcluster.NewBeliever(v.w.signer), signer: v.w.signer}
	}
	v.read()
}

func (v *watcher) read() {
	w := v.w
	w.on(v.at, w.cfg.Poll-w.cfg.Poll/5+time.Duration(w.rnd.Int64N(int64(2*w.cfg.Poll/5)+1)), v.read)
	v.reads++
	number := v.reads
	read := func() subcluster.Records { return w.store.Records(w.storeClock()) }
	if v.queues != nil {
		queues := v.queues()
		read = func() subcluster.Records { return w.store.RecordsOf(w.storeClock(), queues) }
	}
	call(
		w,
		v.at,
		w.storeAt,
		readTime,
		func(reply func(subcluster.Records, error)) {
			reply(atStore(w, false, func() (subcluster.Records, error) {
				records := read()
				records.Plan = w.plan()
				return records, nil
			}))
		},
		func(r subcluster.Records, err error) { v.answered(number, r, err) },
	)
}

// answered takes the end of a read. One that another has overtaken counts for nothing:
// statestore/watch begins none before the last has ended, and so never reads what was
// before what it has read.
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

// policy that holds for a queue.
func (v *watcher) policy(q creel.QueuePath) policies.Policy {
	p, _ := v.table.For(q)
	return p
}

// readTime bounds a read of the store.
const readTime = 5 * time.Second

// validate refuses a policy document that no process can use.
func validate(_ creel.QueuePath, document []byte) error {
	_, err := policies.Parse(document)
	return err
}
