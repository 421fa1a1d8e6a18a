// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/creelrm/creel/subcluster"
)

// sign makes all members sign their writes, one after the other. Then routers and proxies verify signatures. In this
// order no member is lost from view.
func (w *World) sign(last time.Duration) {
	rnd := source(w.cfg.Seed, "signatures")
	moment := func() time.Time { return origin.Add(warmUp + time.Duration(rnd.Int64N(int64(last-warmUp)/2))) }
	for i := range w.clusters {
		w.at(moment(), func() {
			c := w.clusters[i]
			c.signs = true
			if c.up && !w.asleep(c.host) { // otherwise it signs after its restart
				w.say("%s is started again, with the cluster's secret", c.id)
				c.down()
				w.after(time.Second, c.comeBack)
			}
		})
	}
	begins := origin.Add(warmUp + (last-warmUp)/2)
	reads := func(restart func()) {
		w.at(begins.Add(moment().Sub(origin)), func() { w.whenSigned(restart) })
	}
	for _, r := range w.routers {
		reads(func() {
			w.audit.fault("routers that read signatures")
			if r.trust = true; r.up {
				w.killRouter(r, time.Second)
			}
		})
	}
	for i := range w.proxies {
		reads(func() {
			w.audit.fault("proxies that read signatures")
			p := w.proxies[i]
			if p.trust = true; p.up {
				w.killProxy(p, time.Second)
			}
		})
	}
}

// whenSigned calls do once every member's record is signed.
func (w *World) whenSigned(do func()) {
	signed := 0
	for _, r := range w.store.Records(w.storeClock()).Members {
		if w.signer.GoodMember(&r.Member) {
			signed++
		}
	}
	if signed < len(w.clusters) {
		w.after(10*time.Second, func() { w.whenSigned(do) })
		return
	}
	do()
}

// stranger writes into the store without the secret: a member that does not exist, or false data of a member.
func (w *World) stranger(which uint64, _ time.Duration) {
	reads := func(v *watcher) bool { return v.trust && v.from != nil }
	for _, r := range w.routers {
		if !reads(&r.watcher) {
			return
		}
	}
	for _, p := range slices.Concat(w.proxies, w.former) {
		if !reads(&p.watcher) {
			return
		}
	}
	load := []byte(`{"clusterMetrics":{},"creel":{"refusing":"` + nonsense + `"}}`)
	if which%3 == 0 {
		w.audit.fault("members of strangers")
		ghost := subcluster.Member{ID: "sc-of-a-stranger", Epoch: 1, Lease: time.Hour}
		if err := w.store.Register(w.storeClock(), ghost); err != nil {
			w.audit.breach("a stranger's member is not registered: %v", err)
		}
		return
	}
	c := w.clusters[which>>8%uint64(len(w.clusters))]
	w.audit.fault("loads of strangers")
	said := subcluster.Heartbeat{ID: c.id, Epoch: c.joining.Epoch(), Load: load}
	if err := w.store.Heartbeat(w.storeClock(), said); err != nil {
		w.say("a stranger's load is refused: %v", err)
	}
}

// nonsense is the text in strangers' data.
const nonsense = "a stranger says so"

// sees checks that a process that verifies signatures accepts no stranger and misses no signing member.
func (a *auditor) sees(v *watcher) {
	if v.from == nil {
		return
	}
	for i := range v.view.Members {
		m := &v.view.Members[i]
		a.check(a.w.cluster(m.ID) != nil && m.Load.Refusing != nonsense,
			"%s believes a stranger about %s: it is %v, %s", v.at.name, m.ID, m.State, m.Load.Refusing)
	}
	missing := v.from.unsigned
	a.check(missing == 0 || a.forgetful(), "%s does not believe %d members that sign", v.at.name, missing)
}

// trusted is the part of the state store that a process with the cluster's secret accepts.
type trusted struct {
	*subcluster.Believer
	signer   *subcluster.Signer
	unsigned int // members that signed their record and are not accepted
}

func (t *trusted) believed(r subcluster.Records) subcluster.Records {
	out, _ := t.Believe(r)
	t.unsigned = 0
	for i := range r.Members {
		m := &r.Members[i]
		there := slices.ContainsFunc(out.Members, func(o subcluster.Record) bool {
			return o.ID == m.ID && o.Epoch == m.Epoch
		})
		if t.signer.GoodMember(&m.Member) && !there {
			t.unsigned++
		}
	}
	return out
}
