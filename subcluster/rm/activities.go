// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Bounds of recorded activities.
const (
	activitiesKept   = 600 * time.Second // as Hadoop's, after the request or the recording
	activitiesNodes  = 500               // nodes with a request or a record
	activitiesApps   = 100               // applications that are recorded at once
	activitiesOfApp  = 200               // considerations kept of one application
	activitiesInNode = 200               // applications in one consideration
	activitiesGrants = 1000              // grants between two considerations
	activitiesBulks  = 8                 // bulk requests at once
)

// MaxBulk is the maximum number of considerations in one bulk request, as in Hadoop.
const MaxBulk = 500

// NodeActivity is one consideration of a node: its grants since the last one, and the reasons why the waiting
// applications get no more. Considerations happen at the node's heartbeats.
type NodeActivity struct {
	Node      creel.NodeID
	At        time.Time
	Partition string // its label
	Grants    []GrantActivity
	Reserved  bool // for an ask
	Full      bool // nothing is free
	Root      explain.QueueOn
}

// GrantActivity is a container that was granted while activities were recorded.
type GrantActivity struct {
	Container           creel.ContainerID
	Queue               creel.QueuePath
	AppPriority         int32
	Priority            int32
	AllocationRequestID int64
	FromReservation     bool
}

// AppActivity is an application's part of a consideration.
type AppActivity struct {
	Node   creel.NodeID
	At     time.Time
	Grants []GrantActivity
	On     explain.AppOn
}

// activities records considerations while a request for them is open. A machine without such a request has none.
type activities struct {
	nodes  map[creel.NodeID]*nodeRecord
	next   nodeRecord // of any node
	bulks  []*Bulk
	apps   map[creel.ApplicationID]*appRecord
	grants map[creel.NodeID][]GrantActivity // since the nodes' last considerations
	kept   int                              // grants in the map
	swept  int64
}

type nodeRecord struct {
	due     bool // the next consideration is requested
	last    *NodeActivity
	expires int64
}

type appRecord struct {
	until, expires int64 // recording ends; the record is dropped
	done           []AppActivity
}

// Bulk collects the next considerations of any nodes.
type Bulk struct {
	want    int
	done    []NodeActivity
	expires int64
}

// recording returns the record of activities, and creates it for a request.
func (m *Machine) recording() *activities {
	if m.activities == nil {
		m.activities = &activities{
			nodes: map[creel.NodeID]*nodeRecord{}, apps: map[creel.ApplicationID]*appRecord{},
			grants: map[creel.NodeID][]GrantActivity{},
		}
	}
	return m.activities
}

// RecordNode requests the record of a node's next consideration, of any node's for the zero id. It returns the last
// record, nil if there is none yet.
func (m *Machine) RecordNode(now time.Time, id creel.NodeID) (last *NodeActivity, err error) {
	m.at(now)
	r := m.recording()
	r.sweep(m.now)
	of := &r.next
	if id != (creel.NodeID{}) {
		if of = r.nodes[id]; of == nil {
			if len(r.nodes) >= activitiesNodes {
				return nil, tooManyRecords("nodes", activitiesNodes)
			}
			of = &nodeRecord{}
			r.nodes[id] = of
		}
	}
	of.due, of.expires = true, m.now+int64(activitiesKept)
	return of.last, nil
}

// RecordBulk requests the records of the next considerations of any nodes.
func (m *Machine) RecordBulk(now time.Time, want int) (*Bulk, error) {
	m.at(now)
	r := m.recording()
	r.sweep(m.now)
	if len(r.bulks) >= activitiesBulks {
		return nil, tooManyRecords("bulk requests", activitiesBulks)
	}
	b := &Bulk{want: want, expires: m.now + int64(activitiesKept)}
	r.bulks = append(r.bulks, b)
	return b, nil
}

// Bulk returns the records of a bulk request so far. ready is true once all are there, or the request has expired.
func (r Reader) Bulk(b *Bulk) (done []NodeActivity, ready bool) {
	m := r.m
	return b.done, len(b.done) >= b.want || m.activities == nil || !slices.Contains(m.activities.bulks, b)
}

// EndBulk ends a bulk request.
func (m *Machine) EndBulk(b *Bulk) {
	if r := m.activities; r != nil {
		r.bulks = slices.DeleteFunc(r.bulks, func(x *Bulk) bool { return x == b })
		m.forgetRecord()
	}
}

// RecordApp records an application's considerations for the given time.
func (m *Machine) RecordApp(now time.Time, id creel.ApplicationID, d time.Duration) error {
	m.at(now)
	r := m.recording()
	r.sweep(m.now)
	of := r.apps[id]
	if of == nil {
		if len(r.apps) >= activitiesApps {
			return tooManyRecords("applications", activitiesApps)
		}
		of = &appRecord{}
		r.apps[id] = of
	}
	of.until = max(of.until, m.now+int64(min(d, activitiesKept)))
	of.expires = of.until + int64(activitiesKept)
	return nil
}

// AppActivities returns an application's recorded considerations, newest first. ok is false if none was requested.
func (r Reader) AppActivities(id creel.ApplicationID) (all []AppActivity, ok bool) {
	m := r.m
	if m.activities == nil || m.activities.apps[id] == nil {
		return nil, false
	}
	all = slices.Clone(m.activities.apps[id].done)
	slices.Reverse(all)
	return all, true
}

func tooManyRecords(of string, most int) error {
	return &creel.Error{
		Kind: creel.ErrBusy,
		What: "too many recordings of scheduling activities",
		Why:  "activities of " + of + " are recorded already, up to the limit of " + strconv.Itoa(most),
		Try:  "wait until recordings expire, after 10 minutes",
	}
}

// noteGrant records a grant for the next consideration of its node.
func (m *Machine) noteGrant(c *container, g *sched.Grant) {
	r := m.activities
	if r.kept >= activitiesGrants {
		return
	}
	r.kept++
	id := c.node.ID()
	r.grants[id] = append(r.grants[id], GrantActivity{
		Container: c.id(), Queue: ofSched(g.App).Queue().Path(), AppPriority: ofSched(g.App).Priority(),
		Priority: g.Priority, AllocationRequestID: g.AllocationRequestID,
		FromReservation: g.Reason == sched.FromReservation,
	})
}

// considered records a node's consideration for all open requests.
func (m *Machine) considered(n *node) {
	r, id := m.activities, n.ID()
	grants := r.grants[id]
	delete(r.grants, id)
	r.kept -= len(grants)
	at := instant(m.now)
	of := r.nodes[id]
	if of != nil && of.due || r.next.due || r.bulksDue() {
		act := &NodeActivity{
			Node: id, At: at, Partition: m.labels.set.of(id), Grants: grants, Reserved: n.Reserved() != nil,
			Full: m.sched.Explain().FreeOn(&n.Node).MemoryMB <= 0,
			Root: m.sched.Explain().Consider(&n.Node, activitiesInNode),
		}
		if of != nil && of.due {
			of.due, of.last, of.expires = false, act, m.now+int64(activitiesKept)
		}
		if r.next.due {
			r.next = nodeRecord{last: act, expires: m.now + int64(activitiesKept)}
		}
		for _, b := range r.bulks {
			if len(b.done) < b.want {
				b.done = append(b.done, *act)
			}
		}
	}
	for app, of := range r.apps {
		m.consideredApp(app, of, n, grants)
	}
	if m.now-r.swept > int64(time.Second) {
		r.sweep(m.now)
		m.forgetRecord()
	}
}

func (m *Machine) consideredApp(id creel.ApplicationID, of *appRecord, n *node, grants []GrantActivity) {
	a := m.apps.byID[id]
	if m.now > of.until || a == nil || !a.InQueue() {
		return
	}
	act := AppActivity{Node: n.ID(), At: instant(m.now)}
	for _, g := range grants {
		if g.Container.Attempt.Application == id {
			act.Grants = append(act.Grants, g)
		}
	}
	on, waits := m.sched.Explain().ConsiderApp(&a.App, &n.Node)
	if !waits {
		if len(act.Grants) == 0 {
			return
		}
		on = explain.AppOn{App: id, Queue: a.Queue().Path(), Priority: a.Priority(), Outcome: explain.Accepted}
	}
	act.On = on
	if len(of.done) >= activitiesOfApp {
		of.done = slices.Delete(of.done, 0, 1)
	}
	of.done = append(of.done, act)
}

func (r *activities) bulksDue() bool {
	return slices.ContainsFunc(r.bulks, func(b *Bulk) bool { return len(b.done) < b.want })
}

// sweep drops expired requests and records.
func (r *activities) sweep(now int64) {
	r.swept = now
	for id, of := range r.nodes {
		if now > of.expires {
			delete(r.nodes, id)
		}
	}
	if now > r.next.expires {
		r.next = nodeRecord{}
	}
	for id, of := range r.apps {
		if now > of.expires {
			delete(r.apps, id)
		}
	}
	r.bulks = slices.DeleteFunc(r.bulks, func(b *Bulk) bool { return now > b.expires })
}

// forgetRecord drops the record of activities without requests, so that nothing is recorded any more.
func (m *Machine) forgetRecord() {
	r := m.activities
	if len(r.nodes) == 0 && len(r.apps) == 0 && len(r.bulks) == 0 && r.next == (nodeRecord{}) {
		m.activities = nil
	}
}
