// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/durability"
)

const (
	commitTime = 2 * time.Millisecond // of a transaction of the journal
	launchTime = 3 * time.Minute      // for which an AM's start is tried again
	epochStep  = 1000                 // keeps container ids of the subclusters apart
)

// cluster is a ResourceManager with its journal and its nodes. What is in
// kept outlives the process, everything else does not.
type cluster struct {
	*host
	w     *World
	id    creel.SubclusterID
	index int
	conf  rm.Config
	kept  journal
	keys  keys
	nodes []*node

	// Of one epoch.
	m          *rm.Machine
	watch      *rm.Auditor // of what each event changes
	start      time.Time
	nextApp    int32
	good       map[creel.AttemptID]bool // whose tokens are good
	tick       int64                    // when the machine's next Tick is set, 0 for none
	tx         []rm.Action              // saves of this turn
	flying     [][]rm.Action            // transactions on their way to the disk
	gate       durability.Gate[func()]  // which answers wait for which
	actions    []rm.Action
	registered bool // as a member
	loads      codec.Loads
	users      map[creel.ApplicationID]string // of the applications it knows
	report     rm.NodeReport
	use        rm.NodeUse
}

func newCluster(w *World, index int) (*cluster, error) {
	id := creel.SubclusterID(fmt.Sprintf("sc-%d", index+1))
	c := &cluster{w: w, id: id, index: index, keys: newKeys(w.cfg.Seed, index), host: w.host("the ResourceManager of "+string(id), index),
		kept: journal{
			apps:     map[creel.ApplicationID]rm.AppRecord{},
			attempts: map[creel.AttemptID]rm.AttemptRecord{},
			disowned: map[creel.ApplicationID]int64{},
		}}
	c.conf = rm.Defaults()
	c.conf.MinAllocation = creel.NewResource(128, 1)
	c.conf.MaxAllocation = creel.NewResource(8192, 4).Min(w.cfg.NodeSize)
	c.conf.MaxCompletedApps = 1 << 30
	c.conf.MaxAttempts = 4
	c.conf.NodeExpiry, c.conf.AMExpiry, c.conf.ContainerExpiry = w.cfg.Expiry, w.cfg.Expiry, w.cfg.Expiry
	c.conf.Epoch = int64(index+1) * epochStep
	c.conf.Queues = w.cfg.Queues
	if err := c.open(); err != nil {
		return nil, err
	}
	for i := range w.cfg.Nodes {
		c.nodes = append(c.nodes, newNode(c, i))
	}
	return c, nil
}

// open begins an epoch: what the journal has is recovered, and the epoch counted.
func (c *cluster) open() error {
	w := c.w
	// Start times stamp application ids and keep them apart over the federation.
	c.start = w.now.Truncate(time.Millisecond)
	for slices.ContainsFunc(w.clusters, func(o *cluster) bool { return o != c && o.start.Equal(c.start) }) {
		c.start = c.start.Add(time.Millisecond)
	}
	conf := c.conf
	conf.ClusterTimestamp, conf.Epoch = c.start.UnixMilli(), conf.Epoch+c.kept.epochs
	c.kept.epochs++
	var err error
	if c.m, err = rm.New(conf); err != nil {
		return err
	}
	c.watch = rm.NewAuditor(c.m, 0) // full audits come by the auditor's own count
	c.nextApp, c.tick, c.registered, c.loads = 0, 0, false, codec.Loads{}
	c.good, c.users = map[creel.AttemptID]bool{}, map[creel.ApplicationID]string{}
	c.tx, c.flying, c.gate = nil, nil, durability.Gate[func()]{}
	if records := c.kept.replay(); len(records)+len(c.kept.disowned) > 0 {
		if err := c.m.Recover(&rm.Recover{Apps: records, Disowned: c.kept.refused()}); err != nil {
			return err
		}
		for _, a := range records {
			c.w.audit.recovered(c, a)
			c.users[a.Submission.ID] = a.Submission.User
			for _, t := range a.Attempts {
				if !a.State.Ended() && !t.State.Ended() {
					c.good[t.ID] = true
				}
			}
		}
	}
	c.turn(nil)
	w.on(c.host, time.Duration(c.index)*time.Millisecond, c.heartbeats)
	return nil
}

// down kills the process. Of the transactions under way the first few may have
// reached the disk, though nobody was told.
func (c *cluster) down() {
	w := c.w
	for range w.rnd.IntN(len(c.flying) + 1) {
		for _, a := range c.flying[0] {
			c.kept.put(a)
		}
		c.flying = c.flying[1:]
	}
	w.crash(c.host)
}

func (c *cluster) comeBack() {
	c.w.boot(c.host)
	if err := c.open(); err != nil {
		c.w.audit.breach("%s cannot start again: %v", c.id, err)
	}
}

// turn is what the owner of the machine does: an event, then the actions of it.
func (c *cluster) turn(event func(m *rm.Machine)) {
	if event != nil {
		event(c.m)
	}
	c.actions = c.m.Actions(c.actions[:0])
	for i := 0; i < len(c.actions); i++ {
		switch a := c.actions[i].(type) {
		case rm.SaveApp:
			c.keep(a, a.Seq)
		case rm.SaveAttempt:
			c.keep(a, a.Seq)
		case rm.SaveDisowned:
			c.keep(a, a.Seq)
		case rm.LaunchAM:
			c.good[a.Attempt] = true
			c.w.audit.launched(c, a)
			if !a.Unmanaged {
				c.launch(a, c.w.now, 100*time.Millisecond)
			}
		case rm.StopAM:
			c.stopAM(a)
		case rm.AttemptEnded:
			delete(c.good, a.Attempt)
		case rm.AppEnded:
			c.w.audit.appEnded(c, a)
		}
	}
	clear(c.actions)
	c.w.audit.changed(c)
	c.commit()
	if d := c.m.NextDeadline(); !d.IsZero() && (c.tick == 0 || d.UnixNano() < c.tick) {
		c.arm(d)
	}
}

// keep puts a save into the transaction of this turn.
func (c *cluster) keep(a rm.Action, seq uint64) {
	c.tx = append(c.tx, a)
	c.gate.Saved(seq)
}

func (c *cluster) arm(d time.Time) {
	at := d.UnixNano()
	c.tick = at
	epoch := c.epoch
	c.w.at(d, func() {
		if c.epoch != epoch || !c.up || c.tick != at {
			return
		}
		c.tick = 0
		if d := c.m.NextDeadline(); !d.IsZero() && !d.After(c.w.now) {
			c.w.mark("tick", c.number, 0)
			c.turn(func(m *rm.Machine) { m.Tick(c.w.now) })
		} else if !d.IsZero() {
			c.arm(d)
		}
	})
}

// commit sends what this turn saved to the journal, as one transaction; answers
// leave by the same gate as the daemon's.
func (c *cluster) commit() {
	number, free := c.gate.EndTurn(len(c.tx) > 0, nil)
	if number > 0 {
		saves := c.tx
		c.tx = nil
		c.flying = append(c.flying, saves)
		c.w.on(c.host, commitTime, func() {
			for _, a := range saves {
				c.kept.put(a)
			}
			c.flying = c.flying[1:]
			seq, free, _ := c.gate.Durable(number, nil)
			c.turn(func(m *rm.Machine) { m.Saved(c.w.now, seq) })
			for _, run := range free {
				run()
			}
		})
	}
	for _, run := range free {
		run()
	}
}
