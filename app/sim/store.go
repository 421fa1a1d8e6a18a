// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster/rm"
)

// illness is the state of a faulty store.
type illness uint8

const (
	well     illness = iota
	failing          // most calls fail at once; some of these take effect
	readOnly         // every change fails
)

// atStore makes the store serve a call; change distinguishes writes from reads. A failed change may have been made,
// as package statestore warns.
func atStore[T any](w *World, change bool, do func() (T, error)) (T, error) {
	var none T
	sick := func(why string) (T, error) { return none, statestore.Unavailable(why, time.Second) }
	switch w.ill {
	case readOnly:
		if change {
			return sick("the store is read only")
		}
	case failing:
		if w.chance(0.4) {
			return sick("the store fails")
		}
		if w.chance(0.4) {
			_, _ = do() // made, but not answered
			return sick("the store failed after it had served the call")
		}
	}
	return do()
}

// storeClock is the clock of the store's machine.
func (w *World) storeClock() time.Time { return w.now.Add(w.storeSkew) }

// placing is atStore for calls about homes, which wait while the store is rebuilt.
func placing[T any](w *World, change bool, do func() (T, error)) (T, error) {
	if w.rebuilding {
		var none T
		return none, statestore.Unavailable("the store came back empty", time.Second)
	}
	return atStore(w, change, do)
}

// fallIll makes the store faulty for a time.
func (w *World) fallIll(how illness, d time.Duration) {
	if w.ill == well {
		w.ill = how
		w.mark("store ill", int64(how), d.Milliseconds())
		w.after(d, func() { w.ill = well; w.mark("store well", int64(how), 0) })
	}
}

// loseWrites makes the store fail over to a replica that lacks writes acknowledged by the primary in the time d from
// now. Any of them may be missing, although they were acknowledged: see auditor.forgetful.
func (w *World) loseWrites(d time.Duration) {
	snapshot, err := w.store.Snapshot()
	if err != nil {
		w.audit.breach("the store has no snapshot: %v", err)
		return
	}
	from := w.now
	w.after(d, func() {
		w.lost = true
		w.mark("writes lost", d.Milliseconds(), 0)
		w.say("the store fails over, and has lost the writes of %v", d)
		if err := w.store.Restore(snapshot); err != nil {
			w.audit.breach("the store cannot be restored: %v", err)
		}
		w.repeatSince(from)
	})
}

// empty makes the store come back empty. No home is returned or assigned until each ResourceManager has reported its
// applications. The loop and the queries of statestore/rebuild, which does that, are not simulated: all members are
// asked at one moment, once all are up and reachable.
func (w *World) empty() {
	w.lost, w.rebuilding = true, true
	w.emptied++
	w.mark("emptied", int64(w.emptied), 0)
	w.say("the store comes back empty")
	*w.store = *memory.NewState(w.identity(), validate)
	w.after(time.Second, func() { w.rebuild(w.putPolicies) })
}

// identity is the store's identity after the present number of losses.
func (w *World) identity() string { return fmt.Sprintf("sim-%d", w.emptied) }

// backup is an earlier state of the store, which it may go back to.
type backup struct {
	at   time.Time
	data []byte
}

// mostBackups limits the backups, one per minute.
const mostBackups = 10

func (w *World) keepBackup() {
	w.after(time.Minute, w.keepBackup)
	data, err := w.store.Snapshot()
	if err != nil {
		w.audit.breach("the store has no snapshot: %v", err)
		return
	}
	w.backups = append(w.backups[max(0, len(w.backups)-mostBackups+1):], backup{w.now, data})
}

// goBack restores a backup. In the short time before a process checks the store, users repeat submissions made since
// the backup. Then the store counts as emptied.
func (w *World) goBack(which uint64) {
	to := w.backups[which%uint64(len(w.backups))]
	w.lost = true
	w.mark("store goes back", w.now.Sub(to.at).Milliseconds(), 0)
	w.say("the store goes back by %v", w.now.Sub(to.at))
	if err := w.store.Restore(to.data); err != nil {
		w.audit.breach("the store cannot be restored: %v", err)
		return
	}
	w.repeatSince(to.at)
	w.after(time.Second, func() {
		if !w.rebuilding {
			w.rebuilding = true
			w.emptied++
			w.store.Reopen(w.identity())
			w.rebuild(func() error { return nil })
		}
	})
}

// repeatSince makes users repeat some of the submissions accepted since a moment.
func (w *World) repeatSince(at time.Time) {
	for _, s := range w.taken {
		if s.accepted.After(at) && w.chance(0.5) {
			s.through(s.router())
		}
	}
}

// reported returns an application in the form of its ResourceManager's list.
func reported(v *rm.AppView) statestore.ReportedApplication {
	return statestore.ReportedApplication{
		ID: v.ID, Unmanaged: v.Unmanaged, Ended: v.State.Ended(), Running: v.State == creel.AppRunning,
		Attempt: v.Attempt.Attempt, Submitted: v.Submitted, Held: v.Held.Claim, Newest: v.Held.Newest,
	}
}

// keepsFurther checks that, of two runs of an application, the one with a registered AM is kept.
func (a *auditor) keepsFurther(id creel.ApplicationID, at, kept *cluster) {
	ended, known := at.m.App(id)
	stays, also := kept.m.App(id)
	if !known || !also || ended.Held.Claim > 0 || stays.Unmanaged || stays.State.Ended() {
		return
	}
	a.check(ended.State != creel.AppRunning || stays.State == creel.AppRunning,
		"%s is ended in %s, where it runs, and kept in %s, where it is %s", id, at.id, kept.id, stays.State)
}

// rebuilt is the store for statestore.Reclaim, at one moment.
type rebuilt struct{ w *World }

func (r rebuilt) Claim(
	_ context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (creel.SubclusterID, int64, error) {
	return r.w.store.Claim(r.w.storeClock(), app, member, placement)
}

func (r rebuilt) Move(
	_ context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	is, _, err := r.w.store.Move(r.w.storeClock(), app, from, to, number, placement)
	return is, err
}

// claimsContinue checks that no member knows a claim of a rebuilt home that the store can issue again.
func claimsContinue(a *auditor, homes []statestore.ApplicationHome) {
	next := map[creel.ApplicationID]int64{}
	for _, h := range homes {
		_, number, err := a.w.store.Claim(a.w.storeClock(), h.ID, h.Home, nil)
		a.check(err == nil, "%s cannot be claimed after the rebuild: %v", h.ID, err)
		next[h.ID] = number
	}
	for _, c := range a.w.clusters {
		for v := range c.m.Apps {
			known, issues := v.Held.Newest, next[v.ID]
			a.check(known < issues, "%s knows claim %d of %s, and the store issues %d", c.id, known, v.ID, issues)
		}
	}
}

// rebuild writes the homes back into the store, like statestore/rebuild, and then restores the other lost data.
func (w *World) rebuild(putBack func() error) {
	if slices.ContainsFunc(w.clusters, func(c *cluster) bool {
		return !c.up || w.asleep(c.host) || w.apart(w.storeAt, c.host)
	}) {
		w.after(time.Second, func() { w.rebuild(putBack) })
		return
	}
	var reports []statestore.Report
	for _, c := range w.clusters {
		r := statestore.Report{Member: c.id}
		for v := range c.m.Apps {
			r.Applications = append(r.Applications, reported(v))
		}
		reports = append(reports, r)
	}
	homes, conflicts := statestore.Rebuild(reports)
	if _, err := statestore.Reclaim(&flow{w: w}, rebuilt{w}, homes); err != nil {
		w.audit.breach("the homes cannot be written back: %v", err)
	}
	claimsContinue(&w.audit, homes)
	for _, c := range conflicts {
		for _, other := range c.Others {
			w.say("%s is ended in %s: %s", c.Application, other, c.Rule)
			w.audit.keepsFurther(c.Application, w.cluster(other), w.cluster(c.Home))
			w.cluster(other).end(c.Application, "it is at home in "+string(c.Home))
		}
	}
	if err := putBack(); err != nil {
		w.audit.breach("%v", err)
	}
	w.rebuilding = false
	w.mark("rebuilt", int64(len(homes)), int64(len(conflicts)))
}

// putPolicies writes the run's policy documents into the store.
func (w *World) putPolicies() error {
	documents, err := w.cfg.documents()
	if err != nil {
		return err
	}
	for _, p := range documents {
		write := statestore.PolicyWrite{Queue: p.Queue, Document: []byte(p.Document), Author: "sim"}
		if _, err := w.store.PutPolicy(w.storeClock(), write); err != nil {
			return fmt.Errorf("sim: policy of %s: %w", p.Queue, err)
		}
	}
	return nil
}

// forgetful reports whether the store has lost acknowledged writes in this run. The guarantees that depend on them
// are then not promised (package statestore/redis, "What a failover may lose"), and not checked: an application has
// one home and is played once, and a home or a UAM record that was acted on is in the store. All guarantees of
// ResourceManagers and proxies by themselves are still checked: their journals' contents, each container once, limits,
// and that everything ends.
func (a *auditor) forgetful() bool { return a.w.lost }

// homeOf checks that the store has an application's home.
func (a *auditor) homeOf(id creel.ApplicationID, is creel.SubclusterID, who string) {
	if a.forgetful() {
		return
	}
	home, err := a.w.store.Home(a.w.storeClock(), id)
	a.check(err == nil && home == is, "%s has %s in %s, the store has it in %s (%v)", who, id, is, home, err)
}
