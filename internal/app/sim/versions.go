// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// What older versions did, and how they are replaced: docs/adr/0013-fence.md. Each runs
// this version's code without what it lacked, until it is started again.

// rollOut has each part that is of an older version started again as this one, at drawn
// times and so one after the other.
func (w *World) rollOut(last time.Duration) {
	rnd := source(w.cfg.Seed, "rollout")
	moment := func() time.Time { return origin.Add(warmUp + time.Duration(rnd.Int64N(int64(last-warmUp)))) }
	if w.faults.Signed {
		w.sign(last)
	}
	for _, r := range w.routers {
		at := moment()
		if r.old = rnd.Float64() < w.faults.OldRouters; !r.old {
			continue
		}
		w.olderRouters++
		w.at(at, func() {
			w.audit.fault("routers upgraded")
			w.say("%s is upgraded", r.name)
			r.old = false
			w.olderRouters--
			if r.up { // else it is started as what it is now
				w.killRouter(r, time.Second)
			}
		})
	}
	if w.olderRouters > 0 {
		w.after(time.Minute, w.reconcile)
	}
	for _, p := range w.proxies {
		at, home := moment(), p.home.index
		if p.old = rnd.Float64() < w.faults.OldProxies; !p.old {
			continue
		}
		w.at(at, func() {
			p := w.proxies[home] // or the one that was started in its place
			w.audit.fault("proxies upgraded")
			w.say("%s is upgraded", p.name)
			p.old = false
			if p.up {
				w.killProxy(p, time.Second)
			}
		})
	}
}

// sign has all members sign what they write, one after the other, and then routers and
// proxies read the signatures: the order that keeps the federation in sight.
func (w *World) sign(last time.Duration) {
	rnd := source(w.cfg.Seed, "signatures")
	moment := func() time.Time { return origin.Add(warmUp + time.Duration(rnd.Int64N(int64(last-warmUp)/2))) }
	for i := range w.clusters {
		w.at(moment(), func() {
			c := w.clusters[i]
			c.signs = true
			if c.up && !w.asleep(c.host) { // else it signs once it is started again
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

// whenSigned does something once every member's record is signed.
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

// stranger writes into the store without the secret: a member that does not exist, or what
// a member should not have said.
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

// nonsense is what strangers say of members.
const nonsense = "a stranger says so"

// sees: who reads signatures believes no stranger, and misses no member that signs.
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

// trusted is what a process that has the cluster's secret believes of the state store.
type trusted struct {
	*subcluster.Believer
	signer   *subcluster.Signer
	unsigned int // members that signed their record, and are not believed
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

// before makes a submission's core that of a router from before the fence: it believes
// a member that does not know the application, sends no number of a claim, raises none
// when it finds one, and moves a home whatever its number is.
func (t *task) before(core *router.Submitter) {
	core.Homes, core.Disown = numberless{homes{t}}, t.known
	core.Now, core.Paused, core.UnclearWait = nil, nil, 0
}

// known asks a member whether it has an application.
func (t *task) known(
	_ context.Context,
	id creel.SubclusterID,
	app creel.ApplicationID,
	_ int64,
) (router.Standing, error) {
	c := t.r.w.cluster(id)
	standing, err := step(t, c.host, func(reply func(router.Standing, error)) { c.has(app, reply) })
	if standing == router.Absent {
		standing = router.Disowned
	}
	return standing, err
}

// numberless are the homes as the store's scripts had them before claims had numbers.
type numberless struct{ homes }

func (h numberless) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (creel.SubclusterID, int64, error) {
	w, fresh := h.t.r.w, false
	home, err := step(h.t, w.storeAt, func(reply func(creel.SubclusterID, error)) {
		reply(placing(w, true, func() (creel.SubclusterID, error) {
			if home, err := w.store.Home(w.storeClock(), app); err == nil {
				return home, nil
			}
			fresh = true
			home, _, err := w.store.Claim(w.storeClock(), app, member, placement)
			return home, err
		}))
	})
	if fresh {
		return home, 1, err
	}
	return home, 2, err
}

func (h numberless) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	_ int64,
	placement []byte,
) (creel.SubclusterID, error) {
	return h.homes.Move(ctx, app, from, to, 0, placement)
}

// reconcile is a round of statestore/reconcile, whose lists and questions are not
// simulated: it looks at all members that serve at one moment.
func (w *World) reconcile() {
	w.after(time.Minute, w.reconcile)
	if !w.storeAt.up || w.asleep(w.storeAt) || w.ill != well || w.rebuilding {
		return
	}
	serves := func(c *cluster) bool { return c.up && !w.asleep(c.host) && !w.apart(w.storeAt, c.host) }
	found := map[away]bool{}
	for _, c := range w.clusters {
		if !serves(c) {
			continue
		}
		for v := range c.m.Apps {
			home, err := w.store.Home(w.storeClock(), v.ID)
			if v.Unmanaged || v.State.Ended() || err != nil || home == c.id {
				continue
			}
			if at := (away{v.ID, c.id}); !w.away[at] {
				found[at] = true
				continue
			}
			its := w.cluster(home)
			there, known := its.m.App(v.ID)
			switch verdict, why := statestore.JudgeAway(serves(its), known && !there.Unmanaged); verdict {
			case statestore.AwayEnd:
				w.audit.fault("applications ended where they are not at home")
				w.say("%s is ended in %s: %s", v.ID, c.id, why)
				c.kill(v.ID, why, func(bool, error) {})
			case statestore.AwayRehome:
				w.audit.fault("homes that follow their applications")
				w.say("%s is at home in %s now: %s", v.ID, c.id, why)
				if _, _, err := w.store.Move(w.storeClock(), v.ID, home, c.id, 0, nil); err != nil {
					w.audit.breach("the home of %s cannot be moved: %v", v.ID, err)
				}
			}
		}
	}
	w.away = found
}

// away is an application that lives where it is not at home.
type away struct {
	app creel.ApplicationID
	at  creel.SubclusterID
}
