// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/resolver"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

const (
	commitTime = 2 * time.Millisecond // of a journal transaction
	launchTime = 3 * time.Minute      // time limit for retries of an AM's start
	epochStep  = 1000                 // so that container ids of the subclusters differ
	// listedEnded is the number of ended applications that a ResourceManager lists in runs with Faults.Repeats.
	listedEnded = 4
)

// cluster is a ResourceManager with its journal and its nodes. The fields in kept survive the process, the others do
// not.
type cluster struct {
	*host
	others watcher // of the federation; only if routers fall asleep, because its store reads change the random draws
	w      *World
	id     creel.SubclusterID
	index  int
	conf   rm.Config
	kept   journal
	skew   time.Duration // error of its machine's clock at since, after which the clock drifts
	since  time.Time
	drift  float64
	disk   disk // under the journal
	// takesOver: it was started with --take-over, and restarts the same way.
	takesOver bool
	gone      bool // a successor has the journal, and was started while this process was alive
	hadoop    bool // without fences, published hosts and second UAMs, like Hadoop's, until creel's replaces it
	signs     bool // its heartbeats, with the cluster's secret
	keys      keys
	nodes     []*node

	// State of one epoch.
	m         *rm.Machine // the owner's machine
	owner     turn.Owner
	live      turn.Live   // AMs with valid tokens
	watch     *rm.Auditor // checks the changes of each turn
	start     time.Time   // by its host's clock, computed by rm.StartOf
	process   int64       // number of the process, from 1 over all
	joining   subcluster.Enrollment
	excused   time.Time // its last start or resumption after a real or apparent pause
	setBack   bool      // its clock was set back while it ran
	nextApp   int32
	box       []turn.Event                  // events waiting for the owner
	held      bool                          // the owner is delayed, or in a turn
	began     time.Time                     // start of the process, by the world's clock
	tick      int64                         // due time of the next turn without an event, 0 for none
	tx        transaction                   // of this turn
	flying    []commit                      // writes in flight to the disk, in order
	synced    time.Time                     // time at which the last of these is on the disk
	durable   uint64                        // number of transactions on the disk
	reporting bool                          // a report, or a step that must precede it, is in flight
	reported  time.Time                     // time of the last report
	places    *resolver.PublisherState      // its published nodes
	inRound   bool                          // of publishing them
	admitted  bool                          // according to the store
	answers   map[creel.AttemptID]knownAsks // to the last allocate of each attempt
	loads     codec.Loads
	users     map[creel.ApplicationID]string // of its applications
	report    rm.NodeReport
	use       rm.NodeUse
	read      time.Time      // time of its last clock read
	passing   clockSample    // of its time
	alone     bool           // this turn has no event and was caused by a deadline
	taken     []rm.Preempted // by this turn
}

func newCluster(w *World, index int) (*cluster, error) {
	member := &w.cfg.Members[index]
	id := member.ID
	c := &cluster{
		w:     w,
		id:    id,
		index: index,
		keys:  newKeys(w.cfg.Seed, index),
		host:  w.host("the ResourceManager of "+string(id), index),
		kept: journal{
			entries: map[string][]byte{},
			rnd:     source(w.cfg.Seed, "crashes of "+string(id)),
		},
	}
	c.conf = rm.Defaults()
	c.conf.MinAllocation = creel.NewResource(128, 1)
	c.conf.MaxAllocation = creel.NewResource(8192, 4).Min(member.NodeSize)
	c.conf.MaxCompletedApps = 1 << 30
	if f := w.cfg.Faults; f != nil && f.Repeats > 0 {
		c.conf.MaxCompletedApps = listedEnded
	}
	c.conf.MaxAttempts = 4
	c.conf.NodeExpiry, c.conf.AMExpiry, c.conf.ContainerExpiry = w.cfg.Expiry, w.cfg.Expiry, w.cfg.Expiry
	c.conf.Epoch = int64(index+1) * epochStep
	if w.opportune != nil {
		c.conf.Opportunistic = &w.opportune.Central
	}
	c.conf.Queues = w.cfg.Queues
	if member.Queues != nil {
		c.conf.Queues = *member.Queues
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	for i := range member.Nodes {
		c.nodes = append(c.nodes, newNode(c, i))
	}
	return c, nil
}

// open begins an epoch: it recovers from the journal and increments the epoch.
func (c *cluster) open() error {
	w := c.w
	w.processes++
	c.process = w.processes
	if err := c.joins(); err != nil {
		return err
	}
	var err error
	c.start = rm.StartOf(c.clock(), c.conf.Epoch, c.kept.started).UTC()
	c.kept.started, c.excused, c.setBack, c.began = c.start, w.now, false, w.now
	conf := c.conf
	conf.ClusterTimestamp, conf.FirstEpoch, conf.Epoch = c.start.UnixMilli(), conf.Epoch, conf.Epoch+c.kept.epochs
	c.kept.epochs++
	if c.m, err = rm.New(conf); err != nil {
		return err
	}
	c.watch = rm.NewAuditor(c.m, 0) // the auditor's own count causes full audits
	c.admitted, c.reporting = false, false
	c.nextApp, c.tick, c.loads = 0, 0, codec.Loads{}
	c.answers = map[creel.AttemptID]knownAsks{}
	c.read, c.passing = w.now, clockSample{}
	c.owner, c.live, c.users = turn.Owner{Machine: c.m}, turn.Live{}, map[creel.ApplicationID]string{}
	c.box, c.held, c.tx, c.flying, c.durable, c.synced = nil, false, nil, nil, 0, time.Time{}
	r, err := c.kept.replay(&c.owner.Records)
	if err != nil {
		return err
	}
	if len(r.Apps)+len(r.Disowned) > 0 {
		if err := c.m.Recover(c.now(), r); err != nil {
			return err
		}
		for i := range r.Apps {
			c.w.audit.recovered(c, r.Apps[i])
			c.users[r.Apps[i].Submission.ID] = r.Apps[i].Submission.User
			c.live.Recovered(&r.Apps[i])
		}
	}
	c.turn(0)
	w.on(c.host, time.Duration(c.index)*time.Millisecond, c.heartbeats)
	c.watches()
	c.publishesKeys()
	if w.cfg.planned() {
		w.on(c.host, time.Duration(c.index)*time.Millisecond, c.looks)
	}
	c.places, c.inRound = &resolver.PublisherState{Member: c.id, Linger: 120, Verify: 12}, false
	if w.cfg.Places > 0 { // otherwise no AM asks for hosts
		w.on(c.host, publishEvery/2, c.publish)
	}
	c.keep()
	c.follow()
	return nil
}

// down kills the process. Of the transactions in progress the first few may have reached the disk without an
// acknowledgment. The others are lost: the journal cuts off their partial bytes.
func (c *cluster) down() {
	w := c.w
	c.leaveDisk(w.rnd.IntN(len(c.flying) + 1))
	w.crash(c.host)
}

// leaveDisk ends the writes in progress: the given number of transactions is complete on disk, and some bytes of the
// next.
func (c *cluster) leaveDisk(whole int) {
	for range whole {
		if c.disk == full {
			break
		}
		c.kept.put(c.flying[0].transaction)
		c.flying = c.flying[1:]
	}
	c.kept.tear(c.flying)
}

// longestAfterlife limits the time for which a process that was presumed dead keeps running. Then its supervisor ends
// it.
const longestAfterlife = 5 * time.Minute

// succeeded starts another process in the ResourceManager's place, with --take-over, while this one continues. Its
// machine was presumed dead, and its address and the volume with its journal were moved to another. New calls reach
// the other process. This one serves the requests in its sockets when it runs. It ends when it notices that it cannot
// write any more.
func (c *cluster) succeeded() {
	w := c.w
	next := &cluster{
		w: w, id: c.id, index: c.index, conf: c.conf, keys: c.keys, nodes: c.nodes, hadoop: c.hadoop, signs: c.signs,
		host: w.host(c.name, c.index),
		skew: c.skew, since: c.since, drift: c.drift,
	}
	c.leaveDisk(w.lives.IntN(len(c.flying) + 1))
	next.kept = c.kept
	c.gone, c.kept.entries = true, maps.Clone(c.kept.entries)
	next.takesOver = true
	w.mark("two ResourceManagers", c.number, next.number)
	w.audit.hostEnds(c.host)
	w.say("%s has a successor, and goes on", c.name)
	w.clusters[c.index] = next
	for _, n := range c.nodes {
		n.of = next
	}
	for _, p := range slices.Concat(w.proxies, w.former) {
		if p.home == c {
			p.home = next
		}
	}
	if err := next.open(); err != nil {
		w.audit.breach("%s cannot be taken over: %v", c.id, err)
	}
	w.on(c.host, longestAfterlife, func() { w.crash(c.host) })
}

// watches makes it read whether it is drained, like a ResourceManager that is a member.
func (c *cluster) watches() {
	c.others = watcher{w: c.w, at: c.host}
	if c.w.faults.Sleepers > 0 {
		c.others.start()
	}
}

// isDrained reports whether the last read showed it as drained.
func (c *cluster) isDrained() bool {
	if c.others.view == nil || c.hadoop {
		return false
	}
	self, ok := c.others.view.Member(c.id)
	return ok && self.Draining != ""
}

// closed returns the reasons to reject new applications.
func (c *cluster) closed() (out rm.Closed) {
	out.Name = string(c.id)
	if c.disk >= onReserve {
		out.Full = "its disk is full"
	}
	if c.isDrained() {
		out.Drained = "by its administrator"
	}
	return out
}

// counted is the part of an amount that its scheduler accounts for: memory only, or every type. Use of other types
// may exceed a node's size.
func (c *cluster) counted(r creel.Resource) creel.Resource {
	if c.conf.Queues.Calculator == queues.MemoryOnly {
		return creel.NewResource(r.MemoryMB, 0)
	}
	return r
}

// now is the time that its state machine receives, computed from its clocks as in the daemon.
func (c *cluster) now() time.Time {
	passed := c.w.now.Sub(c.read)
	c.read = c.w.now
	return c.owner.Time.Step(passed, c.clock())
}

// pending is the number of containers of both types that an application waits for.
func (c *cluster) pending(app *rm.AppView) int64 {
	n := int64(app.PendingCount)
	if v := rm.OpportunisticOf(c.m, app.ID); v != nil {
		n += int64(v.Asked)
	}
	return n
}

// clock is the wall clock of its host.
func (c *cluster) clock() time.Time {
	passed := c.w.now.Sub(c.since)
	return c.w.now.Add(c.skew + time.Duration(c.drift*float64(passed)))
}

// setClock sets the clock of a running process, which then drifts. A clock set forward looks like a pause to the
// process (package pauseclock); one set back has no visible effect.
func (c *cluster) setClock(skew time.Duration) {
	before := c.clock()
	c.skew, c.since, c.drift = skew, c.w.now, c.w.faults.Drift*(2*c.w.rnd.Float64()-1)
	gap := c.clock().Sub(before)
	c.w.mark("clock", c.number, gap.Milliseconds())
	c.w.say("the clock of %s is set by %v, and drifts by %.4f", c.id, gap, c.drift)
	c.setBack = c.setBack || gap < 0
	c.turn(max(0, gap))
}

// mostSkew is the largest error of a clock. With an error of more than the ten minutes for which a container waits
// for its start, nodes would reject tokens as expired, like Hadoop's.
const mostSkew = 5 * time.Minute

func (c *cluster) comeBack() {
	if c.w.faults.Clocks {
		c.skew, c.since, c.drift = time.Duration(c.w.rnd.Int64N(int64(2*mostSkew)))-mostSkew, c.w.now, 0
		c.w.audit.fault("clocks set")
	}
	if c.hadoop && c.w.rnd.IntN(2) == 0 {
		c.hadoop = false
		c.w.audit.fault("members replaced by creel's")
		c.w.say("%s is replaced by creel's ResourceManager", c.id)
	}
	c.w.boot(c.host)
	if err := c.open(); err != nil {
		c.w.audit.breach("%s cannot start again: %v", c.id, err)
	}
}

// heldUp is the longest delay of an owner. Events that arrive meanwhile share a turn.
const heldUp = 20 * time.Millisecond

// post passes an event to the owner. It runs at once, unless the owner is delayed.
func (c *cluster) post(e turn.Event) {
	c.box = append(c.box, e)
	switch {
	case c.held:
	case c.w.faulty && c.w.chance(c.w.faults.Busy):
		c.hold(time.Duration(c.w.rnd.Int64N(int64(heldUp))))
	default:
		c.turn(0)
	}
}

// hold delays the owner's next turn.
func (c *cluster) hold(d time.Duration) {
	c.held = true
	c.w.on(c.host, d, func() {
		c.held = false
		c.turn(0)
	})
}

// turn is a turn of the owner, as in subcluster/rm/server; turn.Owner implements it.
func (c *cluster) turn(paused time.Duration) {
	now, events := c.now(), c.box
	if paused > 0 {
		c.excused = c.w.now
	}
	c.w.audit.timePasses(c, now)
	c.held, c.box = true, nil // events posted during the actions run after this turn
	c.taken, c.alone = nil, len(events) == 0
	c.owner.Begin(now, paused, c.durable)
	for first := true; first || len(events) > 0; first = false {
		n := min(len(events), turn.MaxEvents)
		for _, e := range events[:n] {
			c.owner.Take(now, e)
		}
		events = events[n:]
		ended := c.owner.End(&c.tx, c.perform)
		if ended.Err != nil {
			c.w.audit.breach("%s cannot write a record: %v", c.id, ended.Err)
		}
		c.w.audit.changed(c)
		c.w.audit.bounded(c)
		c.w.audit.takenBack(c)
		c.commit(ended.Commit)
		for _, answer := range ended.Answers {
			answer()
		}
	}
	if c.held = false; len(c.box) > 0 {
		c.hold(0)
	}
	if d := c.m.NextDeadline(); !d.IsZero() && (c.tick == 0 || d.UnixNano() < c.tick) {
		c.arm(d)
	}
}

// perform carries out an action of the machine, except saves.
func (c *cluster) perform(action rm.Action) {
	c.live.Perform(action)
	switch a := action.(type) {
	case rm.LaunchAM:
		c.w.audit.launched(c, a)
		if !a.Unmanaged {
			c.launch(a, &turn.Launch{Until: c.now().Add(launchTime)})
		}
	case rm.StopAM:
		c.stopAM(a)
	case rm.AppEnded:
		c.w.audit.appEnded(c, a)
	case rm.Preempted:
		switch a.What {
		case rm.TakenBack:
			c.taken = append(c.taken, a)
		case rm.Noticed:
			c.w.audit.noticed(&a)
		}
	}
}

func (c *cluster) arm(d time.Time) {
	at := d.UnixNano()
	c.tick = at
	c.w.on(c.host, d.Sub(c.now()), func() {
		if c.tick != at {
			return
		}
		c.tick = 0
		if d := c.m.NextDeadline(); !d.IsZero() && !d.After(c.now()) {
			c.w.mark("tick", c.number, 0)
			c.turn(0)
		} else if !d.IsZero() {
			c.arm(d)
		}
	})
}

// disk is the state of the disk under a journal.
type disk uint8

const (
	quick     disk = iota
	slow           // a sync takes up to two seconds
	onReserve      // the disk is full; mandatory writes use the journal's reserve
	full           // the reserve is used up: transactions wait for space
)

// commit is a transaction with its number.
type commit struct {
	transaction
	number uint64
}

const (
	slowest   = 2 * time.Second // of the syncs of a slow disk
	roomEvery = time.Second     // time between checks of a full disk
)

// commit sends a turn's transaction to the journal. Transactions become durable in
// their order.
func (c *cluster) commit(number uint64) {
	if number == 0 {
		return
	}
	c.flying = append(c.flying, commit{c.tx, number})
	c.tx = nil
	took := commitTime
	if c.disk == slow {
		took += time.Duration(c.w.rnd.Int64N(int64(slowest)))
	}
	if at := c.w.now.Add(took); at.After(c.synced) {
		c.synced = at
	}
	c.w.on(c.host, c.synced.Sub(c.w.now), c.sync)
}

// sync completes the first transaction in flight to the disk.
func (c *cluster) sync() {
	if c.gone {
		c.w.say("%s ends: its journal is gone", c.name)
		c.w.crash(c.host)
		return
	}
	if c.disk == full {
		c.w.on(c.host, roomEvery, c.sync)
		return
	}
	first := c.flying[0]
	c.flying = c.flying[1:]
	c.kept.put(first.transaction)
	c.durable = first.number
	c.turn(0)
}

// wear makes the disk slow or full for a time.
func (c *cluster) wear(how disk, d time.Duration) {
	if c.disk != quick {
		return
	}
	c.disk = how
	c.w.mark("disk", c.number, int64(how))
	c.w.say("the disk of %s is bad: %d", c.id, how)
	c.w.after(d, func() { c.disk = quick; c.w.mark("disk", c.number, 0) })
}

// forget drops what the checks of its nodes know of applications that do nothing any more.
func (c *cluster) forget(over map[creel.ApplicationID]bool) {
	for _, n := range c.nodes {
		n.queue.Forget(over)
	}
}
