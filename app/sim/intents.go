// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/moves"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/rm"
)

// Users ask routers to kill applications, to move them to other queues, to change their priority, and to signal their
// containers, while any host may be unavailable. A request that a member cannot carry out now is stored; routers have
// it carried out later (statestore/intents).

// askTime limits a router's work on such a request, and intentsEvery is the time between two rounds of a router over
// stored intents.
const (
	askTime      = 30 * time.Second
	intentsEvery = 5 * time.Second
)

// ask draws a user's request, its application, and its router. Applications whose home is unavailable come first,
// then those that wait for their AM and may be moved: for other applications nothing is stored.
func (w *World) ask(which uint64) {
	var all, away []creel.ApplicationID
	for _, id := range w.audit.ids {
		app := w.audit.apps[id]
		if !app.taken || !app.ended.IsZero() {
			continue
		}
		all = append(all, id)
		if c := app.home; c == nil || !c.up || w.asleep(c.host) || w.apart(w.routers[0].host, c.host) {
			away = append(away, id)
		}
	}
	if len(away) > 0 {
		all = away
	}
	if len(all) == 0 {
		return
	}
	id := all[which>>8%uint64(len(all))]
	app := w.audit.apps[id]
	i := intents.Intent{Application: id, User: w.cfg.Jobs[app.job].User}
	number := which >> 32
	switch which % 8 {
	case 0:
		i.Verb = intents.Kill
	case 1, 2:
		i.Verb, i.Level = intents.Priority, int32(number%10)
	case 3, 4:
		leaves := w.clusters[0].leaves()
		i.Verb, i.Queue = intents.Move, leaves[number%uint64(len(leaves))]
	default:
		var held []creel.ContainerID
		if app.am != nil {
			held = slices.SortedFunc(maps.Keys(app.am.held), creel.ContainerID.Compare)
		}
		if len(held) == 0 {
			return
		}
		i.Verb, i.Container = intents.Signal, held[number%uint64(len(held))]
		i.Command = int32(number>>16%3) + 1
	}
	r := w.routers[which>>16%uint64(len(w.routers))]
	w.audit.fault("changes asked of routers")
	call(w, w.user, r.host, askTime+5*time.Second, func(reply func(bool, error)) { r.change(i, reply) },
		func(kept bool, err error) {
			w.say("%s of %s through %s: kept %v, %v", &i, id, r.name, kept, err)
			if kept {
				w.audit.fault("changes kept for later")
			}
		})
}

// change serves a user like router/server.Change and Signal, except that only the home gets a kill: UAMs end with
// their application. It reports whether the change is stored for later.
func (r *gateway) change(i intents.Intent, reply func(kept bool, err error)) {
	t := &task{r: r}
	var kept bool
	var err error
	r.w.start(r.host, askTime, func(f *flow) {
		t.flow = f
		f.between = func() bool { return r.w.dies(r) }
		if i.Verb == intents.Signal {
			kept, err = t.signal(i)
		} else {
			kept, err = t.atHome(i)
		}
	}, func() { reply(kept, err) })
}

func (t *task) atHome(i intents.Intent) (kept bool, err error) {
	store := storeIntents{storeDocuments{t}}
	home, err := t.home(i.Application)
	if err != nil {
		return false, err
	}
	earlier, _ := intents.Earlier(t.flow, store, i) // if the store is away, the request need not wait
	_, err = t.carryOut(t.flow, home, i)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		t.r.memory.Forget(i.Application)
		again, e := store.Home(t.flow, i.Application)
		if e != nil || again == home {
			return false, err
		}
		home = again
		_, err = t.carryOut(t.flow, home, i)
	}
	if err != nil {
		moving := func() bool {
			moving, err := t.moving(t.flow, i.Application)
			return err == nil && moving
		}
		if !intents.Waits(errors.Is(err, creel.ErrUnavailable), errors.Is(err, creel.ErrBusy), moving) {
			return false, err
		}
		err = intents.Record(t.flow, store, i)
		return err == nil, err
	}
	_ = intents.AtOthers(t.flow, store, i, home, earlier, func(ctx context.Context, p intents.Part) error {
		there := i
		there.Application = p.ID
		_, err := t.carryOut(ctx, p.Member, there)
		return err
	}) // a failed change leaves a part unchanged; the user gets the home's answer
	return false, nil
}

func (t *task) signal(i intents.Intent) (kept bool, err error) {
	home, err := t.home(i.Application)
	if err != nil {
		return false, err
	}
	if _, err = t.carryOut(t.flow, home, i); err == nil {
		return false, nil
	}
	var silent []creel.SubclusterID
	if errors.Is(err, creel.ErrUnavailable) {
		silent = append(silent, home)
	}
	for _, c := range t.r.w.clusters {
		if c.id == home {
			continue
		}
		switch _, e := t.carryOut(t.flow, c.id, i); {
		case e == nil:
			return false, nil
		case errors.Is(e, creel.ErrUnavailable):
			silent = append(silent, c.id)
		}
	}
	if len(silent) == 0 {
		return false, err
	}
	waits, e := intents.KeepSignal(t.flow, storeIntents{storeDocuments{t}}, i, home, silent)
	if e != nil || len(waits) == 0 {
		return false, err
	}
	return true, nil
}

// home returns an application's home according to a router.
func (t *task) home(id creel.ApplicationID) (creel.SubclusterID, error) {
	if home, ok := t.r.memory.Home(id); ok {
		return home, nil
	}
	return homes{t}.Home(t.flow, id)
}

func (t *task) moving(ctx context.Context, id creel.ApplicationID) (bool, error) {
	_, moving, err := moves.Of(ctx, storeDocuments{t}, id)
	return moving, err
}

// carryOut sends an intent to a member.
func (t *task) carryOut(_ context.Context, at creel.SubclusterID, i intents.Intent) (bool, error) {
	c := t.r.w.cluster(at)
	return step(t, c.host, func(reply func(bool, error)) { c.change(i, reply) })
}

// intentLoop starts the loop in which a router has stored intents carried out.
func (r *gateway) intentLoop() {
	w := r.w
	if w.cfg.Faults == nil || w.cfg.Faults.Asks == 0 {
		return
	}
	t := &task{r: r}
	loop := intents.New(storeIntents{storeDocuments{t}}, intents.Config{
		View: func() *subcluster.View { return r.view },
		Do: func(ctx context.Context, m *subcluster.Status, i intents.Intent) (bool, error) {
			return t.carryOut(ctx, m.ID, i)
		},
		Moving: t.moving,
	})
	var round func()
	round = func() {
		w.start(r.host, time.Minute, func(f *flow) {
			t.flow = f
			f.between = func() bool { return w.dies(r) }
			_ = loop.Round(f) // the store's outage passes
		}, func() { w.on(r.host, intentsEvery, round) })
	}
	w.on(r.host, intentsEvery, round)
}

// change implements these calls like subcluster/rm/server: it answers when the change is durable; a kill is done when
// the application has ended.
func (c *cluster) change(i intents.Intent, reply func(bool, error)) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		done, err := true, error(nil)
		switch i.Verb {
		case intents.Kill:
			done, err = m.Kill(now, i.Application, "killed by its user")
		case intents.Priority:
			_, err = m.SetPriority(now, i.Application, i.Level)
		case intents.Move:
			err = m.Move(now, i.Application, i.Queue)
		case intents.Signal:
			err = m.Signal(now, rm.Signal{Container: i.Container, Command: i.Command})
		}
		c.owner.Hold(func() {
			if err == nil && done {
				c.w.audit.carriedOut(c, i)
			}
			reply(done, err)
		})
		return nil
	})
}

// storeIntents is the store for the loop over stored intents; each call is a step.
type storeIntents struct{ storeDocuments }

func (s storeIntents) Home(ctx context.Context, id creel.ApplicationID) (creel.SubclusterID, error) {
	return homes{s.t}.Home(ctx, id)
}

func (s storeIntents) UAMRecordsOf(_ context.Context, id creel.ApplicationID) ([]statestore.UAMRecord, error) {
	w := s.t.r.w
	return step(s.t, w.storeAt, func(reply func([]statestore.UAMRecord, error)) {
		reply(atStore(w, false, func() ([]statestore.UAMRecord, error) { return w.store.UAMRecordsOf(id), nil }))
	})
}

func (s storeIntents) PutDocument(_ context.Context, x statestore.DocumentWrite) (statestore.Document, error) {
	w := s.t.r.w
	return step(s.t, w.storeAt, func(reply func(statestore.Document, error)) {
		reply(atStore(w, true, func() (statestore.Document, error) {
			set, err := w.store.Documents(w.storeClock(), x.Class)
			if err != nil {
				return statestore.Document{}, err
			}
			before, _ := set.Find(x.Name)
			d, err := w.store.PutDocument(w.storeClock(), x)
			switch {
			case err != nil:
			case x.Data != nil:
				w.audit.keeps(x.Name)
			case before.Version > 0:
				w.audit.keepsNoMore(&before)
			}
			return d, err
		}))
	})
}

// intentKey identifies a change of an application's part in one member, from any user.
type intentKey struct {
	member  int
	app     creel.ApplicationID
	verb    intents.Verb
	level   int32
	queue   string
	command signalCommand
}

// intentSubject identifies a property of an application's part in one member that users set: the last request counts.
type intentSubject struct {
	member int
	app    creel.ApplicationID
	verb   intents.Verb
}

// signalCommand is one command for one container.
type signalCommand struct {
	container creel.ContainerID
	command   int32
}

func wantedOf(c *cluster, i *intents.Intent) intentKey {
	return intentKey{c.index, i.Application, i.Verb, i.Level, i.Queue, signalCommand{i.Container, i.Command}}
}

// signalRecord is a signal that a ResourceManager has accepted.
type signalRecord struct {
	heartbeats int // answers received since by the container's node
	arrived    bool
}

// mostHeartbeats limits the answers that a node may receive without a signal that its ResourceManager has accepted.
// One was in flight, and one may have been a copy.
const mostHeartbeats = 3

// carriedOut records that a member has carried out an intent durably.
func (a *auditor) carriedOut(c *cluster, i intents.Intent) {
	a.did[wantedOf(c, &i)] = a.w.now
	if i.Verb == intents.Priority || i.Verb == intents.Move {
		a.set[intentSubject{c.index, i.Application, i.Verb}] = a.w.now
	}
	switch i.Verb {
	case intents.Kill:
		r, kept := c.kept.app(i.Application)
		a.check(!kept || r.State.Ended(), "%s reports that %s has ended, which its journal does not know", c.id, i.Application)
	case intents.Signal:
		s := signalCommand{i.Container, i.Command}
		if _, runs := a.running[i.Container]; runs && a.signals[s] == nil {
			a.signals[s] = &signalRecord{}
		}
	}
}

// keeps records that an intent is stored.
func (a *auditor) keeps(name string) { a.wants[name] = a.w.now }

// keepsNoMore checks the deletion of an intent: it was carried out, was rejected, was replaced by a later request, or
// its application no longer exists.
func (a *auditor) keepsNoMore(d *statestore.Document) {
	i, err := intents.Read(d, d.Time)
	if err != nil {
		a.breach("the record %s cannot be read: %v", d.Name, err)
		return
	}
	app := a.apps[i.Application]
	if i.Refused != "" || a.forgetful() || !app.ended.IsZero() {
		return
	}
	since := a.wants[d.Name]
	for _, c := range a.w.clusters {
		if i.Member != "" && i.Member != c.id {
			continue
		}
		done, did := a.did[wantedOf(c, &i)]
		if set, later := a.set[intentSubject{c.index, i.Application, i.Verb}]; later && (!did || set.After(done)) {
			done, did = set, true
		}
		v, there := c.m.App(i.Application)
		if did && !done.Before(since) || i.Member != "" && (!there || v.State.Ended()) {
			return
		}
	}
	a.breach("a user's request for %s (%s) was deleted before it was carried out", i.Application, d.Name)
}

// signalArrives records that a node received a signal.
func (a *auditor) signalArrives(n nm.SignalContainer) {
	if s := a.signals[signalCommand{n.ID, int32(n.Command)}]; s != nil {
		s.arrived = true
	}
}

// heartbeats records that a node received a heartbeat's answer with all signals that its ResourceManager had
// accepted. After a registration, the signals come with later answers. Which of two ResourceManagers answered is not
// checked.
func (a *auditor) heartbeats(n *node, anew bool) {
	if a.w.faults.RMLives > 0 {
		return
	}
	for s, sent := range a.signals {
		p := n.jobs[s.container]
		if sent.arrived || p == nil || p.ended {
			continue
		}
		if sent.heartbeats++; anew {
			sent.heartbeats = 0
		}
		a.check(sent.heartbeats <= mostHeartbeats, "node %s never received the signal for %s (%s)", n.name, s.container,
			pb.SignalContainerCommandProto(s.command))
	}
}

// keptIntents lists stored intents that were neither carried out nor rejected.
func (a *auditor) keptIntents() string {
	if a.w.faults.Asks == 0 {
		return ""
	}
	set, err := a.w.store.Documents(a.w.storeClock(), "intents")
	if err != nil {
		return err.Error()
	}
	var left []string
	for k := range set.Documents {
		i, err := intents.Read(&set.Documents[k], set.Now)
		if err != nil || i.Refused == "" {
			left = append(left, set.Documents[k].Name)
		}
	}
	return list(left)
}
