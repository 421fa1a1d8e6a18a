// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// auditor checks invariants from outside, and counts. It has no effect on the run.
type auditor struct {
	w   *World
	ams workload.AMConfig

	running map[creel.ContainerID]struct{} // processes
	awaited int                            // unfinished jobs
	open    int                            // of them, jobs that users have submitted
	living  int                            // AMs with a running process
	moved   time.Time                      // last progress of anything
	applications
	transit
	checked  int64
	breaches []string
	faults   map[string]int64
	kept     int                             // checks of queues that lost containers to others
	spent    map[interval]creel.Resource     // resources preempted for queues with a budget
	budgeted int                             // checks of budgets
	followed int64                           // rounds in which a plan's capacities were in force
	unproven map[creel.ApplicationID]bool    // whose acceptance a router failed to record
	dropped  map[creel.AttemptID]bool        // attempts whose UAM record was dropped
	did      map[intentKey]time.Time         // last time at which a member carried out an intent
	set      map[intentSubject]time.Time     // last time at which a member got a new value for an application
	wants    map[string]time.Time            // last write of each stored intent, by its record's name
	epochs   map[creel.SubclusterID]int64    // highest epoch issued by the store
	used     map[memberEpoch]int64           // the process that used an epoch
	signals  map[signalCommand]*signalRecord // accepted by ResourceManagers, for processes that ran then
	grants   []grantRecord
	tally    invariants.Tally // of the federation's queues
	fullest  float64          // highest use of any federation-wide maximum
	limited  []limitUse       // queues with federation-wide limits
	submits  []time.Duration
	short    []float64
	usage
	ids []creel.ApplicationID // in order of naming
}

// transit has the grants of ResourceManagers that no AM has received.
type transit struct {
	granted   int64                        // to AMs, by ResourceManagers
	told      int64                        // of them, received by AMs
	onWay     map[creel.ContainerID]grant  // the others, without those lost
	lost      map[creel.ContainerID]string // the cause
	forgotten map[string]int64             // lost grants of forgotten applications, by cause
}

func newTransit() transit {
	return transit{
		onWay: map[creel.ContainerID]grant{}, lost: map[creel.ContainerID]string{}, forgotten: map[string]int64{},
	}
}

// usage has the use of queues and members, one sample per entitlementEvery.
type usage struct {
	samples map[creel.QueuePath][]Sample
	filled  [][]float64 // of each member
	sampled int         // number of samples
}

// appRecord is the world's knowledge of one application.
type appRecord struct {
	job     int
	taken   bool      // a router accepted it
	refused bool      // a router rejected it for good
	runs    time.Time // start of its first AM
	home    *cluster  // launched its AM
	ended   time.Time // at its home
	state   creel.ApplicationState
	played  int            // attempts that received the confirmation of their end
	ams     int            // present processes of AMs
	moves   bool           // it was once held for a move
	am      *am            // the latest one
	latest  map[int]*am    // by member: the latest one that began there
	begun   map[int32]bool // attempts whose AM has started
	twice   bool           // an AM started a second time, which is permitted here
	told    map[int]int64  // by member: epoch of the last container reported to its AM
	// registered is the latest attempt registered by a process of a ResourceManager.
	registered map[*cluster]int32
	// containers are those of which anything is known, until the application is forgotten.
	containers map[creel.ContainerID]containerRecord
	forgotten  bool
}

// interval is one interval of a queue's preemption budget.
type interval struct {
	queue  creel.QueuePath
	begins time.Time // by the store's clock
}

// history is the set of events of a container, each at most once.
type history uint8

const (
	wasGranted  history = 1 << iota // reported to its AM
	hasStarted                      // a process ran
	hasEnded                        // and ended
	wasTold                         // its completion was reported to its AM
	wasReleased                     // its AM released it
	hasVanished                     // it was retained, and its completion may never be reported
	wasPromoted                     // its promotion reached its AM
)

// containerRecord is the auditor's knowledge of one container.
type containerRecord struct {
	events  history
	granter *cluster // the process of the ResourceManager that granted it, nil if not recorded
}

// applications are those of a world. Of one whose end was checked only its appRecord remains, without containers
// and AMs, so that a day of any length needs the memory of its unfinished work.
type applications struct {
	apps   map[creel.ApplicationID]*appRecord
	ending []ending  // applications whose end was checked
	next   time.Time // of forget
}

// ending is an application that is forgotten at a time.
type ending struct {
	app creel.ApplicationID
	due time.Time
}

// record returns a container's record, which is empty for a container of which nothing is known.
func (m *applications) record(id creel.ContainerID) containerRecord {
	if app := m.apps[id.Attempt.Application]; app != nil {
		return app.containers[id]
	}
	return containerRecord{}
}

// happened reports whether a container had an event.
func (m *applications) happened(id creel.ContainerID, what history) bool {
	return m.record(id).events&what != 0
}

// keep stores a container's record. Nothing may happen to a container of a forgotten application, except that a store
// that lost writes lets one run again.
func (a *auditor) keep(id creel.ContainerID, k containerRecord) {
	app := a.apps[id.Attempt.Application]
	if app == nil || app.forgotten && !a.forgetful() {
		a.breach("container %s is used, and its application ended long ago or never existed", id)
		return
	}
	if app.containers == nil {
		app.containers = map[creel.ContainerID]containerRecord{}
	}
	app.containers[id] = k
}

// happens records an event of a container.
func (a *auditor) happens(id creel.ContainerID, what history) {
	k := a.record(id)
	k.events |= what
	a.keep(id, k)
}

// forgetLater forgets an application after a time. Until then a late copy of a call may start one of its containers.
// All tokens of its containers expire within it.
func (m *applications) forgetLater(id creel.ApplicationID, due time.Time) {
	m.ending = append(m.ending, ending{id, due})
}

// due takes out the applications that can be forgotten: their time has come, and they have no process.
func (m *applications) due(now time.Time, running map[creel.ContainerID]struct{}) map[creel.ApplicationID]bool {
	over := map[creel.ApplicationID]bool{}
	m.ending = slices.DeleteFunc(m.ending, func(e ending) bool {
		if now.Before(e.due) || !m.apps[e.app].idle(running) {
			return false
		}
		over[e.app] = true
		return true
	})
	return over
}

// forgetEvery is the time between two rounds of forget.
const forgetEvery = time.Minute

// forget drops what is known of ended applications, and arrivals of messages that have arrived.
func (a *auditor) forget() {
	w := a.w
	if w.now.Before(a.next) {
		return
	}
	a.next = w.now.Add(forgetEvery)
	maps.DeleteFunc(w.lanes, func(_ lane, at int64) bool { return at <= w.now.UnixNano() })
	over := a.applications.due(w.now, a.running)
	if len(over) == 0 {
		return
	}
	for id := range over {
		a.apps[id].forget()
	}
	a.transit.forget(over)
	w.opportune.Forget(over)
	for _, c := range w.clusters {
		c.forget(over)
	}
}

// idle reports whether an application has no process.
func (r *appRecord) idle(running map[creel.ContainerID]struct{}) bool {
	for id := range r.containers {
		if _, runs := running[id]; runs {
			return false
		}
	}
	return r.ams == 0
}

// forget drops the application's containers and AMs.
func (r *appRecord) forget() {
	r.forgotten, r.containers, r.latest, r.registered = true, nil, nil, nil
	if r.am != nil {
		r.am.drop()
		r.am.held, r.am.before = nil, nil
	}
}

func (a *auditor) init(w *World) {
	*a = auditor{
		w:            w,
		ams:          workload.DefaultAMConfig(),
		running:      map[creel.ContainerID]struct{}{},
		awaited:      len(w.cfg.Jobs),
		moved:        w.now,
		faults:       map[string]int64{},
		applications: applications{apps: map[creel.ApplicationID]*appRecord{}},
		transit:      newTransit(),
		unproven:     map[creel.ApplicationID]bool{},
		dropped:      map[creel.AttemptID]bool{},
		did:          map[intentKey]time.Time{},
		set:          map[intentSubject]time.Time{},
		epochs:       map[creel.SubclusterID]int64{},
		used:         map[memberEpoch]int64{},
		wants:        map[string]time.Time{},
		signals:      map[signalCommand]*signalRecord{},
		spent:        map[interval]creel.Resource{},
		usage:        usage{samples: map[creel.QueuePath][]Sample{}, filled: make([][]float64, len(w.cfg.Members))},
	}
}

func (a *auditor) breach(format string, args ...any) {
	text := fmt.Sprintf("at %v: ", a.w.now.Sub(origin).Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	a.w.say("BROKEN %s", text)
	if len(a.breaches) < 20 {
		a.breaches = append(a.breaches, text)
	}
}

func (a *auditor) broken() bool { return len(a.breaches) > 0 }

func (a *auditor) check(ok bool, format string, args ...any) {
	a.checked++
	if !ok {
		a.breach(format, args...)
	}
}

func (a *auditor) fault(kind string) { a.faults[kind]++ }

// over: every job has ended.
func (a *auditor) over() bool { return a.awaited == 0 }

// Applications.

// due records that a user has submitted a job. A day may have hours without jobs.
func (a *auditor) due() {
	a.open++
	a.moved = a.w.now
}

func (a *auditor) named(s *submission) {
	a.check(a.apps[s.app] == nil, "the id %s was given out twice", s.app)
	a.apps[s.app] = &appRecord{job: s.job}
	a.ids = append(a.ids, s.app)
}

func (a *auditor) accepted(s *submission, home creel.SubclusterID) {
	a.apps[s.app].taken = true
	a.moved = a.w.now
	a.submits = append(a.submits, a.w.now.Sub(s.due))
	if c := a.w.cluster(home); c != nil {
		_, kept := c.kept.app(s.app)
		a.acceptedIn(s.app, c)
		over := !a.apps[s.app].ended.IsZero() // its home may not list it any more
		a.check(kept || over || a.apps[s.app].moves, "%s is taken by %s, and its journal does not know", s.app, home)
	}
	if !a.apps[s.app].moves { // it may move while the answer is in flight
		a.homeOf(s.app, home, "a router")
	}
}

// refused checks a router's permanent rejection. The simulator's own days never cause one.
func (a *auditor) refused(s *submission, err error) {
	a.check(a.w.cfg.Refusals, "%s was refused: %v", s.app, err)
	a.w.mark("refused", int64(s.app.ID), int64(s.job))
	a.w.say("%s is refused: %v", s.app, err)
	app := a.apps[s.app]
	a.check(!app.taken && app.home == nil, "%s was refused, and runs in %s", s.app, nameOf(app.home))
	app.refused = true
	a.awaited--
	a.open--
	a.moved = a.w.now
}

func (a *auditor) launched(c *cluster, l rm.LaunchAM) {
	if l.Unmanaged {
		return
	}
	app := a.apps[l.Attempt.Application]
	a.check(a.forgetful() || app.home == nil || app.home.index == c.index,
		"%s runs in %s and in %s", l.Attempt.Application, nameOf(app.home), c.id)
	app.home = c
	_, kept := c.kept.attempt(l.Attempt)
	a.check(kept, "%s is launched in %s, and its journal does not know", l.Attempt, c.id)
	a.homeOf(l.Attempt.Application, c.id, string(c.id)+", which launches its AM,")
}

// takes checks an accepted submission: a disowned application stays refused, even if a submission carries no claim
// number. The attempts of an application that the member no longer lists are counted from 1 again.
func (a *auditor) takes(c *cluster, s *rm.Submission, known bool) {
	if app := a.apps[s.ID]; app != nil && !known {
		delete(app.registered, c)
	}
	a.check(known || s.Unmanaged || s.Claim > c.kept.disowned(s.ID) || c.kept.disowned(s.ID) == 0,
		"%s takes %s under claim %d, and has disowned it up to claim %d", c.id, s.ID, s.Claim, c.kept.disowned(s.ID))
	a.check(known || s.Claim == 0 || !c.isDrained(),
		"%s takes %s under claim %d, and has read that it is drained", c.id, s.ID, s.Claim)
}

func nameOf(c *cluster) creel.SubclusterID {
	if c == nil {
		return "nowhere"
	}
	return c.id
}

func (a *auditor) appEnded(c *cluster, e rm.AppEnded) {
	a.w.mark("app ended", int64(e.App.ID), int64(e.State))
	a.loses(causeEnd, func(g grant) bool { return g.app == e.App && g.rm == c.host })
	app := a.apps[e.App]
	v, listed := c.m.App(e.App)
	if !listed { // more applications ended in this turn than it lists
		v.Unmanaged = app.home != nil && app.home.index != c.index
	}
	if v.Unmanaged {
		// If a proxy dies before its AM's next call, completions that were reported only to it are lost.
		if m := app.am; m != nil {
			for _, held := range slices.SortedFunc(maps.Keys(m.latest().held), creel.ContainerID.Compare) {
				if held.Epoch()/epochStep-1 == int64(c.index) {
					a.vanish(m, held, c, false)
				}
			}
		}
		return
	}
	a.ends(c, e.App, app, e.State)
	if e.State != creel.AppFinished {
		a.w.say("%s ended as %s: %s", e.App, e.State, v.Diagnostics)
	}
}

func (a *auditor) ends(c *cluster, id creel.ApplicationID, app *appRecord, state creel.ApplicationState) {
	// After a restart, an application's end may be missing, and the application ends again.
	a.check(a.forgetful() || app.home == nil || app.home.index == c.index,
		"%s ended in %s, and runs in %s", id, c.id, nameOf(app.home))
	a.moved = a.w.now
	if app.ended.IsZero() {
		a.awaited--
		a.open--
		ended := a.w.now
		a.w.after(a.silence(), func() { a.noUAMs(id, ended) })
	}
	app.ended, app.state, app.home = a.w.now, state, c
}

// recovered records a recovered application: its end may have become durable before the process died without
// reporting it.
func (a *auditor) recovered(c *cluster, r rm.AppRecord) {
	if app := a.apps[r.Submission.ID]; r.State.Ended() && !r.Submission.Unmanaged && app.ended.IsZero() {
		a.ends(c, r.Submission.ID, app, r.State)
	}
}

// silence is how long a UAM may survive after its proxy forgot it.
func (a *auditor) silence() time.Duration {
	d := a.w.cfg.Expiry + time.Minute
	if a.w.faults.Again > 0 {
		d += latest
	}
	return d
}

// noUAMs checks that no UAM of an application is left some time after its end. A restarted ResourceManager grants a
// silent AM its whole expiry time again, and more if it was paused or its clock was set forward. It counts a late
// copy of a proxy's call as a heartbeat. If its clock was set back, its time passes slower by a tenth until the clock
// has caught up (pauseclock.SteadyClock).
func (a *auditor) noUAMs(id creel.ApplicationID, ended time.Time) {
	if a.forgetful() && a.runsAgain(id) {
		now := a.w.now
		a.w.after(a.silence(), func() { a.noUAMs(id, now) })
		return
	}
	over := true
	for _, c := range a.w.clusters {
		v, ok := c.m.App(id)
		if !c.up || !ok || !v.Unmanaged || v.State.Ended() {
			continue
		}
		over = false
		since, patience := ended, a.silence()
		if c.excused.After(since) {
			since = c.excused
		}
		if c.setBack {
			patience += a.w.cfg.Expiry / 9
		}
		if left := patience - a.w.now.Sub(since); left > 0 {
			a.w.after(left, func() { a.noUAMs(id, ended) })
		} else {
			a.check(false, "%s has ended, and its UAM in %s is still %s", id, c.id, v.State)
		}
	}
	a.checked++
	if over {
		a.forgetLater(id, a.w.now.Add(2*a.silence()))
	}
}

// runsAgain reports whether an application that has ended in a member runs in another. A store that lost writes permits
// that.
func (a *auditor) runsAgain(id creel.ApplicationID) bool {
	return slices.ContainsFunc(a.w.clusters, func(c *cluster) bool {
		v, ok := c.m.App(id)
		return ok && !v.Unmanaged && !v.State.Ended()
	})
}

// amBegins checks that an attempt has one AM, even with two processes of a ResourceManager.
func (a *auditor) amBegins(m *am) {
	a.living++
	app := a.apps[m.attempt.Application]
	app.ams++
	if app.begun == nil {
		app.begun = map[int32]bool{}
	}
	a.check(!app.begun[m.attempt.Attempt] || a.forgetful(),
		"the AM of %s begins a second time", m.attempt)
	app.twice = app.twice || app.begun[m.attempt.Attempt]
	app.begun[m.attempt.Attempt] = true
	if app.runs.IsZero() {
		app.runs = a.w.now
	}
	if app.latest == nil {
		app.latest = map[int]*am{}
	}
	app.am, app.latest[m.home] = m, m
	a.moved = a.w.now
}

func (a *auditor) amEnds(m *am) {
	a.living--
	a.loses(causeAM, func(g grant) bool { return g.am == m })
	a.apps[m.attempt.Application].ams--
}

// played records that an AM received the confirmation of its end; no other AM may receive it.
func (a *auditor) played(m *am) {
	app := a.apps[m.attempt.Application]
	app.played++
	a.check(a.forgetful() || app.played == 1,
		"%s was played to its end %d times", m.attempt.Application, app.played)
}

// Containers.

func (a *auditor) once(id creel.ContainerID, what history, text string) {
	a.check(!a.happened(id, what), "container %s was %s twice", id, text)
	a.happens(id, what)
}

// answered checks that no grant takes a node or a queue above its limit.
func (a *auditor) answered(c *cluster, r *rm.Answer) {
	if r.Duplicate || len(r.Granted) == 0 {
		return
	}
	a.granting(c, r)
	a.granted += int64(len(r.Granted))
	a.leaves(c, r)
	a.moved = a.w.now
	for i := range r.Granted {
		n, ok := c.m.Node(r.Granted[i].Node)
		a.check(
			ok && c.counted(n.Used).Fits(n.Total),
			"node %s has %s and %s of it is given out",
			r.Granted[i].Node,
			n.Total,
			n.Used,
		)
	}
	app, _ := c.m.App(r.Granted[0].ID.Attempt.Application)
	q, ok := c.m.Queue(string(app.Queue))
	a.check(ok && c.counted(q.Used).Fits(q.Max),
		"queue %s of %s may use %s and uses %s", app.Queue, c.id, q.Max, q.Used)
}

// takenBack checks a turn's preemptions: CapacityScheduler leaves each losing queue its guaranteed share of the
// member, or the share of a plan in force. A turn in which something else ends, such as the other containers of a
// preempted AM, proves nothing.
func (a *auditor) takenBack(c *cluster) {
	if len(c.taken) == 0 {
		return
	}
	lost := map[creel.QueuePath]creel.Resource{}
	for _, t := range c.taken {
		if !c.alone || t.AM || c.conf.Queues.Scheduler != queues.CapacityScheduler {
			return
		}
		if t.Queue != t.ForQueue {
			lost[t.Queue] = lost[t.Queue].Add(t.Resource)
		}
	}
	total := c.counted(c.m.Cluster().Total)
	for path, amount := range lost {
		q, ok := c.m.Queue(string(path))
		due := c.counted(q.Guaranteed).Dominant(total)
		if q.Planned != nil {
			due = q.Planned.Share
		}
		used := q.Used.Add(creel.NewResource(1, 1)) // guarantees are rounded
		has, had := c.counted(used).Dominant(total), c.counted(used.Add(amount)).Dominant(total)
		a.check(ok && had > due && has >= due,
			"%s of %s had %.4f of it and is guaranteed %.4f: with %s taken back it has %.4f",
			path, c.id, had, due, amount, has)
		a.kept++
	}
}

// noticed checks a container that is about to be preempted. All members' preemptions for a queue in one interval must
// be within the federation's budget, once all have received a plan and while nothing prevents the next plan from
// reaching them. Without a plan there is no limit.
func (a *auditor) noticed(p *rm.Preempted) {
	if p.Queue == p.ForQueue || a.w.cfg.Tree == nil {
		return // no budget applies between users of one queue
	}
	for i := range a.w.cfg.Tree.Queues {
		q := &a.w.cfg.Tree.Queues[i]
		if !q.PreemptionBounded() || q.Path != p.ForQueue && !q.Path.IsAncestorOf(p.ForQueue) {
			continue
		}
		of := interval{q.Path, a.w.storeClock().Truncate(q.PreemptionEvery)}
		a.spent[of] = a.spent[of].Add(p.Resource)
		bound := a.w.cfg.Rebalancer && a.w.cfg.Faults == nil && of.begins.Sub(origin) > 2*planEvery
		a.check(!bound || a.spent[of].Fits(q.Preemption), "in the interval from %v %s is taken back for %s, of %s",
			of.begins.Sub(origin), a.spent[of], q.Path, q.Preemption)
		a.budgeted++
	}
}

// grantTold checks that an AM receives each container once. It receives a member's containers in the order of its
// ResourceManager's epochs: after one of a later epoch none of an earlier epoch. If two AMs of one attempt are
// permitted, each receives its own.
func (a *auditor) grantTold(m *am, id creel.ContainerID) {
	if m == nil || !a.apps[m.attempt.Application].twice {
		a.once(id, wasGranted, "granted")
	}
	if m == nil {
		return
	}
	app, of := a.apps[m.attempt.Application], int(id.Epoch()/epochStep)
	if app.told == nil {
		app.told = map[int]int64{}
	}
	a.check(id.Epoch() >= app.told[of], "%s receives %s after a container of epoch %d",
		m.attempt, id, app.told[of]%epochStep)
	app.told[of] = id.Epoch()
}

// registers and serves check attempts: one epoch of a ResourceManager serves no attempt after it has registered a
// later one. Earlier answers may still reach the earlier AM.
func (a *auditor) registers(c *cluster, t creel.AttemptID) {
	a.serves(c, t)
	app := a.apps[t.Application]
	if app.registered == nil {
		app.registered = map[*cluster]int32{}
	}
	app.registered[c] = t.Attempt
}

func (a *auditor) serves(c *cluster, t creel.AttemptID) {
	later := a.apps[t.Application].registered[c]
	a.check(later <= t.Attempt, "%s serves %s, and has registered attempt %d", c.id, t, later)
}

// granting checks that a container was granted by the process that issued its id, so that two concurrent processes of
// a ResourceManager never issue the same container.
func (a *auditor) granting(c *cluster, r *rm.Answer) {
	if a.w.faults.RMLives == 0 {
		return
	}
	for i := range r.Granted {
		id := r.Granted[i].ID
		k := a.record(id)
		a.check(k.granter == nil || k.granter == c, "%s is granted by two epochs of %s", id, c.id)
		k.granter = c
		a.keep(id, k)
	}
}

// wanted checks that an AM receives no more containers than it asks for.
func (a *auditor) wanted(m *am, g workload.Grant, asked int) {
	a.arrives(g.Container)
	a.check(asked > 0 || a.apps[m.attempt.Application].twice,
		"%s received %s at unwanted priority %d", m.attempt, g.Container, g.Priority)
}

// launching checks that a UAM is launched only once a restarted proxy would know it, and registered only once a
// restarted proxy would have its token.
func (a *auditor) launching(s *session, member creel.SubclusterID, phase string) {
	record, err := a.w.store.UAMRecord(s.attempt)
	kept := err == nil && slices.ContainsFunc(record.UAMs, func(m statestore.UAM) bool {
		return m.Member == member && (phase == "" || m.Phase == phase)
	})
	a.check(kept || a.forgetful() || s.former(), // its saved state may be lost when it resumes
		"%s uses its UAM in %s (%s), and the store does not know: %v", s.attempt, member, phase, err)
}

// registered checks that an AM is reported as registered only if a restarted proxy would know it.
func (a *auditor) registered(s *session) {
	_, err := a.w.store.UAMRecord(s.attempt)
	a.check(err == nil || a.forgetful(), "%s is reported as registered, which the store does not know: %v", s.attempt, err)
}

// sessionOver checks the reason for a session's end: another proxy's session or a later attempt's replaced it, or a
// call after the attempt's end made it. Late saves of a dead proxy may look like another proxy's. A store that went
// back to an earlier state ends no session.
func (a *auditor) sessionOver(s *session, why string) {
	if why != "superseded" || a.w.faults.Stale > 0 || a.w.faults.Again > 0 {
		return
	}
	records := a.w.store.UAMRecordsOf(s.attempt.Application)
	later := slices.ContainsFunc(records, func(r statestore.UAMRecord) bool { return r.Attempt.Compare(s.attempt) > 0 })
	// Two AMs of one attempt have one record.
	gives := later || s.former() || a.dropped[s.attempt] || s.epoch > 0 || a.apps[s.attempt.Application].twice
	a.check(gives, "the session of %s is superseded without a successor", s.attempt)
}

// finished checks that the end of an AM is confirmed only once its ResourceManager would know it after a restart.
func (a *auditor) finished(c *cluster, id creel.AttemptID) {
	t, ok := c.kept.attempt(id)
	a.check(
		ok && t.Final != creel.FinalUndefined,
		"%s is reported as finished, which the journal of %s does not know",
		id,
		c.id,
	)
}

// disowned checks that a router receives "present" or "refused for ever" only if a restart would not lose that
// answer.
func (a *auditor) disowned(c *cluster, id creel.ApplicationID, claim int64, here bool) {
	_, known := c.kept.app(id)
	a.check(known || !here && c.kept.disowned(id) >= claim,
		"a router receives that %s is in %s (%v), refused up to claim %d, which the journal does not know",
		id, c.id, here, claim)
}

// givenBack checks that a container whose release was acknowledged ends, long before it would expire unstarted. A
// proxy that dies loses releases that it has not forwarded; then the expiry ends the container. A late start can make
// a node run an ended container. A ResourceManager that restarts afterwards considers it live, and it ends with its
// application.
func (a *auditor) givenBack(m *am, id creel.ContainerID) {
	c := a.w.clusters[id.Epoch()/epochStep-1]
	proxy, rm := m.proxy().epoch, c.process
	a.w.after(releaseTime, func() {
		c := a.w.clusters[c.index] // it may have been taken over
		over := a.happened(id, wasTold)
		if m.dead || m.proxy().epoch != proxy || !c.up || over && c.process != rm {
			return
		}
		_, live := c.m.Container(id)
		a.check(!live, "%s was given back by its AM %v ago, and %s still has it", id, releaseTime, c.id)
	})
}

// releaseTime limits the time of a release: longer than any outage, partition or pause, and shorter than a
// container's wait for its start.
const releaseTime = 4 * time.Minute

// knownAsks is the set of asks that a ResourceManager knew when it answered.
type knownAsks struct {
	id      int32 // of the answer
	pending int64
}

// asked checks that the asks which a session has sent to a member, by its own state, equal those that the member's
// ResourceManager knew when it answered. Exceptions are unsent changes, and two AMs of one attempt that both ask,
// after a store lost writes.
func (a *auditor) asked(s *session, c *cluster, then knownAsks, id int32) {
	if s.closed || s.driver.Session() == nil || then.id != id || s.former() || c.gone {
		return
	}
	if app := a.apps[s.attempt.Application]; app != nil && app.twice {
		return
	}
	if n, settled := s.driver.Session().Asked(c.id); settled {
		a.check(then.pending >= n,
			"%s sent %s an ask for %d containers; %d arrived", s.attempt, c.id, n, then.pending)
	}
}

func (a *auditor) released(id creel.ContainerID) { a.happens(id, wasReleased) }

// completionTold checks that each proxy reports a completion once. A restarted proxy cannot know which reports have
// reached the AM, and repeats those that may not have.
func (a *auditor) completionTold(m *am, id creel.ContainerID, epoch int) {
	before, told := m.told[id]
	a.check(!told || epoch != before, "the completion of container %s was reported twice", id)
	m.told[id] = epoch
	a.happens(id, wasTold)
}

func (a *auditor) processStarted(id creel.ContainerID) {
	a.once(id, hasStarted, "started")
	a.running[id] = struct{}{}
}

func (a *auditor) processEnded(id creel.ContainerID) {
	a.once(id, hasEnded, "ended")
	delete(a.running, id)
	for command := range int32(len(creel.SignalCommands)) {
		delete(a.signals, signalCommand{id, command + 1})
	}
	a.moved = a.w.now
}

// changed makes a ResourceManager's auditor check the state that an event changed.
func (a *auditor) changed(c *cluster) {
	a.checked++
	if err := c.watch.Check(); err != nil {
		a.breach("%s after an event: %v", c.id, err)
	}
}

// clockSample has two times of a ResourceManager: the latest one, and an earlier one.
type clockSample struct {
	told, then time.Time
	since      time.Time // true time of the earlier one
}

// timePasses checks that a running ResourceManager's time passes about as fast as the true time, whatever happens to
// its clock. Otherwise its deadlines would be late by the difference.
func (a *auditor) timePasses(c *cluster, now time.Time) {
	p := &c.passing
	if now.After(p.told) {
		p.told = now
	}
	passed := a.w.now.Sub(p.since)
	if !p.since.IsZero() && passed < time.Minute {
		return
	}
	slow := p.told.Sub(p.then) < passed-passed/8
	a.check(p.since.IsZero() || !slow, "of %v only %v have passed for %s", passed, p.told.Sub(p.then), c.id)
	p.then, p.since = p.told, a.w.now
}

// fenced checks that a ResourceManager is not a member any more after its successor was admitted. err is the store's
// answer to a heartbeat or a registration of a process.
func (a *auditor) fenced(c *cluster, process int64, err error) {
	c.admitted = c.admitted || err == nil && process == c.process
	a.check(err != nil || !c.gone || !a.w.clusters[c.index].admitted || a.forgetful(),
		"%s was taken over, and is taken for the member", c.name)
}

// full makes every ResourceManager check its whole state.
func (a *auditor) full() {
	for _, c := range a.w.clusters {
		if c.up {
			err := c.m.Audit()
			a.check(err == nil, "%s: %v", c.id, err)
		}
	}
}

// clean reports whether nothing is left of applications that have all ended.
func (a *auditor) clean() bool {
	if a.living > 0 || len(a.running) > 0 {
		return false
	}
	for _, p := range slices.Concat(a.w.proxies, a.w.former) {
		if !p.up || len(p.sessions) > 0 {
			return false
		}
	}
	for _, c := range a.w.clusters {
		if !c.up || c.m.Cluster().Containers > 0 || len(c.flying) > 0 || liveApps(c) != "" {
			return false
		}
	}
	return a.records() == "" && a.keptIntents() == "" && a.members() == ""
}

// records lists ended applications that still have a UAM record in the store although their proxy stayed alive. If a
// proxy dies while it ends UAMs, their ResourceManagers' expiry ends them, and the home's expiry removes the record.
func (a *auditor) records() string {
	if a.forgetful() {
		return ""
	}
	var left []string
	for _, id := range a.ids {
		if c := a.apps[id].home; c != nil && a.w.proxies[c.index].epoch == 0 && len(a.w.store.UAMRecordsOf(id)) > 0 {
			left = append(left, id.String())
		}
	}
	return list(left)
}

// recordDropped checks that an application's last UAM record is deleted only once no UAM of it is left. The exception
// is a late launch whose caller no longer waits.
func (a *auditor) recordDropped(id creel.AttemptID) {
	a.dropped[id] = true
	late := a.w.faults.Orphans || a.w.faults.Stale > 0 || a.w.faults.Again > 0
	if late || a.forgetful() || len(a.w.store.UAMRecordsOf(id.Application)) > 0 {
		return
	}
	for _, c := range a.w.clusters {
		if v, ok := c.m.App(id.Application); c.up && ok && v.Unmanaged {
			a.check(v.State.Ended(), "the UAM record of %s goes, and its UAM in %s is %s", id, c.id, v.State)
		}
	}
}

func liveApps(c *cluster) string {
	var left []string
	for v := range c.m.Apps {
		if !v.State.Ended() || v.InScheduler {
			left = append(left, fmt.Sprintf("%s (%s)", v.ID, v.State))
		}
	}
	return list(left)
}

func list(names []string) string {
	if n := len(names); n > 5 {
		names = append(names[:5:5], fmt.Sprintf("and %d more", n-5))
	}
	return strings.Join(names, ", ")
}

// stuck fails the run if nothing has progressed for longer than any automatic wait.
func (a *auditor) stuck() {
	if a.w.killHelpless() {
		a.moved = a.w.now
		return
	}
	var left []string
	for _, id := range a.ids {
		if app := a.apps[id]; app.ended.IsZero() {
			text := fmt.Sprintf(
				"%s (job %d, home %s, taken %v, %d AMs",
				id,
				app.job,
				nameOf(app.home),
				app.taken,
				app.ams,
			)
			for _, c := range a.w.clusters {
				if v, ok := c.m.App(id); ok {
					text += fmt.Sprintf(
						"; in %s %s, %d containers, %d wanted",
						c.id,
						v.State,
						v.Containers,
						v.PendingCount,
					)
				}
			}
			left = append(left, text+a.waitsFor(app.am)+")")
		}
	}
	a.breach("nothing has moved for %v; %d jobs have not ended: %s", a.w.patience(), a.awaited, list(left))
}

// waitsFor describes the state of an AM that does not finish.
func (a *auditor) waitsFor(m *am) string {
	if m == nil || m.dead {
		return ""
	}
	wanted, running := m.play.Outstanding()
	text := fmt.Sprintf("; its AM wants %d and counts %d running", wanted, running)
	var held []string
	for id := range m.held {
		state := ""
		for i, name := range []string{"granted", "started", "ended", "told", "released"} {
			if a.happened(id, 1<<i) {
				state += " " + name
			}
		}
		held = append(held, id.String()+state)
	}
	slices.Sort(held)
	if len(held) > 0 {
		text += ": " + list(held)
	}
	return text
}

// final checks that nothing is lost and nothing is left.
func (a *auditor) final() {
	a.surplus()
	noneWaits(a.w)
	a.check(a.awaited == 0, "%d jobs have not ended", a.awaited)
	a.check(
		a.living == 0 && len(a.running) == 0,
		"%d AMs and %d containers still run on nodes",
		a.living,
		len(a.running),
	)
	for _, p := range slices.Concat(a.w.proxies, a.w.former) {
		a.check(len(p.sessions) == 0, "%s has %d sessions left", p.name, len(p.sessions))
	}
	for _, c := range a.w.clusters {
		a.check(c.up, "%s is down", c.name)
		apps := liveApps(c)
		a.check(apps == "", "%s still has %s", c.id, apps)
		n := c.m.Cluster().Containers
		a.check(n == 0, "%s still counts %d containers", c.id, n)
	}
	left := a.records()
	a.check(left == "", "the store still has UAM records of %s", left)
	waits := a.keptIntents()
	a.check(waits == "", "%s was never carried out", waits)
	others := a.members()
	a.check(others == "", "the store has other members than there are: %s", others)
}

// typeOf is the application type of a job. Jobs of the other type leave no data on their nodes for other containers,
// so their idle UAMs are released.
func typeOf(job int) string {
	if job%2 == 0 {
		return "MAPREDUCE"
	}
	return "DISTRIBUTEDSHELL"
}

// entitlementEvery is the time between comparisons of queues' use with their federation-wide guarantees.
const entitlementEvery = 10 * time.Second

func (a *auditor) entitlements() {
	if a.over() {
		return
	}
	a.w.after(entitlementEvery, a.entitlements)
	a.forget()
	uncharged(a.w)
	type use struct{ guaranteed, used, demand creel.Resource }
	var paths []creel.QueuePath
	queues := map[creel.QueuePath]*use{}
	var total creel.Resource
	for _, c := range a.w.clusters {
		if !c.up {
			continue
		}
		total = total.Add(c.counted(c.m.Cluster().Total))
		for q := range c.m.Queues {
			if !q.Leaf {
				continue
			}
			u := queues[q.Path]
			if u == nil {
				u = &use{}
				queues[q.Path] = u
				paths = append(paths, q.Path)
			}
			used := c.counted(q.Used)
			u.guaranteed, u.used = u.guaranteed.Add(c.counted(q.Guaranteed)), u.used.Add(used)
			u.demand = u.demand.Add(used).Add(c.counted(q.Pending))
		}
	}
	for _, p := range paths {
		u := queues[p]
		if grantable, limited := a.grantable(p); limited {
			u.demand = u.demand.Min(grantable).Max(u.used)
		}
		owed, lacks := invariants.Owed(u.guaranteed, u.demand, u.used, total)
		a.sample(p, Sample{Used: u.used.Dominant(total), Entitled: owed})
		if owed > 0 {
			a.short = append(a.short, lacks/owed)
		}
	}
	a.sampleMembers(a.w.clusters)
}

// uncharged checks that opportunistic containers count against no queue: the use of a queue is the sum of its
// guaranteed containers.
func uncharged(w *World) {
	if w.opportune == nil {
		return
	}
	for _, c := range w.clusters {
		if !c.up {
			continue
		}
		sums := map[creel.QueuePath]creel.Resource{}
		for n := range c.m.Nodes {
			for _, v := range c.m.NodeContainers(n.ID) {
				app, known := c.m.App(v.ID.Attempt.Application)
				if known && v.ExecutionType == creel.Guaranteed {
					sums[app.Queue] = sums[app.Queue].Add(v.Resource)
				}
			}
		}
		for q := range c.m.Queues {
			w.audit.check(!q.Leaf || q.Used.Equal(sums[q.Path]),
				"queue %s of %s is charged for %s, and its guaranteed containers have %s", q.Path, c.id, q.Used, sums[q.Path])
		}
	}
}

// noneWaits checks that no opportunistic container is left.
func noneWaits(w *World) {
	for _, c := range w.clusters {
		n, _ := c.m.Opportunistic()
		w.audit.check(n.Containers == 0 && n.Waiting == 0,
			"%s still counts %d opportunistic containers, %d waiting", c.id, n.Containers, n.Waiting)
	}
}

// refusal begins the diagnostics of a placed container that a ResourceManager did not take.
const refusal = "Container refused by the ResourceManager: "

// takes records the containers of a report that a ResourceManager accepted, and checks the refusals in its answer. It
// refuses only containers whose node or application has ended since, and those with a token of its earlier start:
// proxies read the new identifier late. Beyond a federation-wide maximum it refuses too: a list of nodes that a proxy
// has may be older than another session's containers.
// An id of an earlier start would mean that the session placed by a list from
// before its registration.
func takes(c *cluster, placed []rm.PlacedContainer, answer *rm.Answer) {
	a := &c.w.audit
	for i := range placed {
		id := placed[i].ID
		if !c.w.opportune.Placements.Take(id) {
			continue
		}
		c.w.mark("placed", id.ID, c.number)
		a.granted++
		if m := a.apps[id.Attempt.Application].am; m != nil {
			a.onWay[id] = grant{id.Attempt.Application, m, m.proxy().host, c.host}
		}
	}
	for i := range answer.Completed {
		why, refused := strings.CutPrefix(answer.Completed[i].Diagnostics, refusal)
		if !refused || answer.Duplicate {
			continue
		}
		id := answer.Completed[i].ID
		a.fault("placed containers that their member refused")
		c.w.say("%s refuses %s: %s", c.id, id, why)
		above := c.w.cfg.Tree != nil && strings.Contains(why, "the federation's maximum")
		if above {
			a.lost[id] = causeMaximum
			delete(a.onWay, id)
		}
		a.check(above || strings.Contains(why, "earlier start") || strings.Contains(why, "not running") ||
			strings.Contains(why, "gets no containers"), "%s refuses %s: %s", c.id, id, why)
	}
}

// reports checks the containers that a session reports to a member: proxies never give an id to two containers, since
// the member would take one of them, and the AM start the other. Only the record separates the ids of two proxies.
func reports(s *session, to *cluster, placed []*pb.ContainerProto) {
	w := s.w
	for _, c := range placed {
		if broken := w.opportune.Placements.Report(c); !w.audit.forgetful() {
			w.audit.check(broken == "", "%s reports to %s: %s", s.attempt, to.id, broken)
		}
	}
}
