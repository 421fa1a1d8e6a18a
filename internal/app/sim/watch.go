// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// watcher keeps a process's view of the federation: it reads the store now
// and then, as statestore/watch does.
type watcher struct {
	w     *World
	at    *host
	view  *subcluster.View
	table *policies.Table
}

// start begins with nothing seen; it is called at each boot.
func (v *watcher) start() {
	v.view, v.table = nil, nil
	v.read()
}

func (v *watcher) read() {
	w := v.w
	w.on(v.at, w.cfg.Poll-w.cfg.Poll/5+time.Duration(w.rnd.Int64N(int64(2*w.cfg.Poll/5)+1)), v.read)
	call(
		w,
		v.at,
		w.storeAt,
		5*time.Second,
		func(reply func(subcluster.Records, error)) { reply(w.store.Records(w.now), nil) },
		func(r subcluster.Records, err error) {
			switch {
			case err == nil:
				v.view = subcluster.Build(v.view, r, r.Now)
				v.table = policies.NewTable(v.table, v.view.Policies)
			case v.view != nil:
				v.view = subcluster.Unreachable(v.view, err.Error())
			}
		},
	)
}

// policy that holds for a queue.
func (v *watcher) policy(q creel.QueuePath) policies.Policy {
	p, _ := v.table.For(q)
	return p
}
