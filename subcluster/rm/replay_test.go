// SPDX-License-Identifier: Apache-2.0

package rm_test

import (
	"container/heap"
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/workload/traces"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// replay plays recorded jobs on a machine in virtual time: nodes run their containers, AMs ask as MapReduce's do, and
// an auditor checks each event's changes. Every container must end exactly once.
type replay struct {
	t      testing.TB
	m      *rm.Machine
	audit  *rm.Auditor
	origin time.Time
	now    time.Duration
	queue  simEvents
	seq    int
	nodes  map[creel.NodeID]*replayNode
	ams    map[creel.AttemptID]*replayAM
	times  *workload.Durations

	events, tasks, ended, jobs int
	most                       int // tasks at once
}

type simEvent struct {
	at  time.Duration
	seq int
	do  func()
}

type simEvents []simEvent

func (h simEvents) Len() int { return len(h) }
func (h simEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h simEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *simEvents) Push(x any)   { *h = append(*h, x.(simEvent)) }
func (h *simEvents) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = simEvent{}
	*h = old[:len(old)-1]
	return x
}

type replayNode struct {
	id       creel.NodeID
	response int32
	running  []creel.ContainerID
}

type replayAM struct {
	id       creel.AttemptID
	own      rm.Grant
	machine  *workload.AM
	response int32
	asks     []rm.Ask
	held     map[creel.ContainerID]bool
	over     bool
}

func (r *replay) in(d time.Duration, do func()) {
	r.seq++
	heap.Push(&r.queue, simEvent{r.now + d, r.seq, do})
}

func (r *replay) time() time.Time { return r.origin.Add(r.now) }

// after ends each event: it audits the machine and performs its actions.
func (r *replay) after() {
	r.events++
	if err := r.audit.Check(); err != nil {
		r.t.Fatalf("event %d at %v: %v", r.events, r.now, err)
	}
	r.most = max(r.most, r.tasks-r.ended)
	for _, a := range r.m.Actions(nil) {
		switch a := a.(type) {
		case rm.LaunchAM:
			r.launch(a)
		case rm.AppEnded:
			r.jobs++
			if a.Final != creel.FinalSucceeded {
				r.t.Fatalf("%s ended %s", a.App, a.Final)
			}
		}
	}
}

func (r *replay) launch(a rm.LaunchAM) {
	m := r.ams[a.Attempt]
	m.own = a.Container
	r.in(0, func() {
		r.m.AMLaunched(r.time(), a.Attempt)
		n := r.nodes[m.own.Node]
		n.running = append(n.running, m.own.ID)
		r.after()
	})
	r.in(2*time.Second, func() {
		if _, err := r.m.RegisterAM(
			r.time(),
			&rm.RegisterAM{Attempt: a.Attempt, Host: m.own.Node.Host},
		); err != nil {
			r.t.Fatal(err)
		}
		r.after()
		r.do(m, m.machine.Registered())
		r.call(m)
	})
}

// call is one heartbeat of an AM; the next is a second later.
func (r *replay) call(m *replayAM) {
	if m.over {
		return
	}
	out, err := r.m.Allocate(r.time(), m.id, &rm.AllocateRequest{ResponseID: m.response, Asks: m.asks})
	if err != nil {
		r.t.Fatal(err)
	}
	m.response, m.asks = out.ResponseID, nil
	var grants []workload.Grant
	for _, g := range out.Granted {
		if m.held[g.ID] {
			r.t.Fatalf("%s was granted twice", g.ID)
		}
		m.held[g.ID] = true
		grants = append(grants, workload.Grant{Container: g.ID, Node: g.Node, Priority: g.Priority})
	}
	var ends []workload.Completion
	for _, c := range out.Completed {
		if !m.held[c.ID] {
			r.t.Fatalf("%s ended, which is not running", c.ID)
		}
		delete(m.held, c.ID)
		r.ended++
		ends = append(ends, workload.Completion{Container: c.ID, Exit: c.ExitStatus})
	}
	r.after()
	r.do(m, m.machine.Allocated(grants, ends))
	if !m.over {
		r.in(time.Second, func() { r.call(m) })
	}
}

// do performs an AM's steps after an event.
func (r *replay) do(m *replayAM, s workload.Steps) {
	for _, a := range s.Asks {
		m.asks = append(m.asks, rm.Ask{Priority: a.Priority, ResourceName: a.Name, Count: a.Count, Resource: a.Size})
	}
	for _, x := range s.Starts {
		r.tasks++
		n := r.nodes[x.Grant.Node]
		n.running = append(n.running, x.Grant.Container)
		r.in(x.Duration, func() { r.stop(n, x.Grant.Container, x.Exit) })
	}
	if len(s.Releases) > 0 {
		r.t.Fatalf("%s releases %v: it got what it did not ask for", m.id, s.Releases)
	}
	if s.Finish {
		m.over = true
		if s.Failed || len(m.held) > 0 {
			r.t.Fatalf("%s failed, or ends with %d containers", m.id, len(m.held))
		}
		if _, err := r.m.FinishAM(
			r.time(),
			&rm.FinishAM{Attempt: m.id, Status: creel.FinalSucceeded},
		); err != nil {
			r.t.Fatal(err)
		}
		r.after()
		n := r.nodes[m.own.Node]
		r.in(time.Second, func() { r.stop(n, m.own.ID, 0) })
	}
}

// stop ends a container on its node, which reports it at once.
func (r *replay) stop(n *replayNode, id creel.ContainerID, exit int32) {
	for i, c := range n.running {
		if c == id {
			n.running[i] = n.running[len(n.running)-1]
			n.running = n.running[:len(n.running)-1]
			break
		}
	}
	r.report(n, rm.ContainerStatus{ID: id, State: creel.ContainerComplete, ExitStatus: exit})
}

func (r *replay) report(n *replayNode, statuses ...rm.ContainerStatus) {
	for _, c := range n.running {
		statuses = append(statuses, rm.ContainerStatus{ID: c, State: creel.ContainerRunning})
	}
	out := r.m.NodeHeartbeat(r.time(), &rm.NodeReport{ID: n.id, ResponseID: n.response, Containers: statuses})
	if out.Action != rm.NodeNormal || len(out.Cleanup) > 0 {
		r.t.Fatalf("%s is told to %v, and to end %v", n.id, out.Action, out.Cleanup)
	}
	n.response = out.ResponseID
	r.after()
}

// heartbeat lets a node report now and every period until the day is over.
func (r *replay) heartbeat(n *replayNode, period time.Duration) {
	r.report(n)
	if len(r.ams) > r.jobs {
		r.in(period, func() { r.heartbeat(n, period) })
	}
}

func readDay(t testing.TB) ([]workload.TraceRecord, *workload.Durations) {
	f, err := traces.Open(traces.FB2009x0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	day, err := workload.ReadSWIM(f)
	if err != nil {
		t.Fatal(err)
	}
	g, err := traces.Open(traces.Yahoo)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	times, err := workload.ReadAttempts(g)
	if err != nil {
		t.Fatal(err)
	}
	return day, times
}

// playDay plays the jobs of a part of the day on 600 nodes. Nodes report once
// in a period and when a container ends.
func playDay(t testing.TB, from, to, period time.Duration, fullAudit int) *replay {
	day, times := readDay(t)
	jobs, err := workload.Plan{
		From:      from,
		To:        to,
		Speed:     1,
		Machines:  600,
		BlockSize: 64 << 20,
		Users:     20,
		Seed:      2009,
		Queues: []workload.Share{
			{Queue: "root.adhoc", Weight: 3},
			{Queue: "root.reports.daily", Weight: 2},
			{Queue: "root.reports.hourly", Weight: 1},
		},
	}.Jobs(day)
	if err != nil {
		t.Fatal(err)
	}
	c := rm.Defaults()
	c.ClusterTimestamp, c.Volatile = 1, true
	c.Queues.Root.Children = []queues.Queue{
		{
			Name:           "adhoc",
			Capacity:       queues.PercentOf(50),
			MaxCapacity:    queues.PercentOf(80),
			MinUserPercent: 25,
			UserFactor:     2,
			MaxAMPercent:   0.5,
		},
		{Name: "reports", Capacity: queues.PercentOf(50), MaxCapacity: queues.PercentOf(100), Children: []queues.Queue{
			{
				Name:         "daily",
				Capacity:     queues.PercentOf(70),
				MaxCapacity:  queues.PercentOf(100),
				UserFactor:   2,
				MaxAMPercent: 0.5,
				NodeOrder:    queues.Pack,
			},
			{
				Name:         "hourly",
				Capacity:     queues.PercentOf(30),
				MaxCapacity:  queues.PercentOf(60),
				UserFactor:   3,
				MaxAMPercent: 0.5,
				Policy:       queues.FairShare,
			},
		}},
	}
	m, err := rm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &replay{
		t:      t,
		m:      m,
		audit:  rm.NewAuditor(m, fullAudit),
		origin: time.Unix(1_250_000_000, 0).UTC(),
		now:    from,
		times:  times,
		nodes:  map[creel.NodeID]*replayNode{},
		ams:    map[creel.AttemptID]*replayAM{},
	}
	for i := range 600 {
		n := &replayNode{id: creel.NodeID{Host: fmt.Sprintf("n%03d", i), Port: 45454}}
		r.nodes[n.id] = n
		if _, err := m.RegisterNode(
			r.time(),
			&rm.RegisterNode{
				ID:       n.id,
				HTTPPort: 8042,
				Rack:     fmt.Sprintf("/r%d", i/30),
				Resource: creel.NewResource(8192, 8),
			},
		); err != nil {
			t.Fatal(err)
		}
		r.after()
		r.in(time.Duration(i)*period/600, func() { r.heartbeat(n, period) })
	}
	want := 0
	for i, j := range jobs {
		want += j.Tasks()
		id := creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}
		am := &replayAM{
			id:      creel.AttemptID{Application: id, Attempt: 1},
			machine: workload.NewAM(j, workload.DefaultAMConfig(), times),
			held:    map[creel.ContainerID]bool{},
		}
		r.ams[am.id] = am
		r.in(max(j.Submit-from, 0), func() {
			s := &rm.Submission{
				ID:    id,
				User:  j.User,
				Queue: string(j.Queue),
				Name:  j.Name,
				AM:    rm.Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
			}
			if err := m.Submit(r.time(), s); err != nil {
				t.Fatal(err)
			}
			r.after()
		})
	}
	for len(r.queue) > 0 {
		h := heap.Pop(&r.queue).(simEvent)
		for {
			d := m.NextDeadline()
			if d.IsZero() || d.After(r.origin.Add(h.at)) {
				break
			}
			m.Tick(d)
			r.after()
		}
		r.now = max(r.now, h.at)
		h.do()
	}
	if err := m.Audit(); err != nil {
		t.Fatal(err)
	}
	if v := m.Cluster(); r.jobs != len(jobs) || r.tasks != want || r.ended != want || v.Containers != 0 ||
		v.Granted != int64(want+len(jobs)) ||
		v.Released != v.Granted {
		t.Fatalf("%d of %d jobs, %d of %d tasks, %d ended; %+v", r.jobs, len(jobs), r.tasks, want, r.ended, v)
	}
	return r
}

// TestRecordedDayAudited plays the first hour of a recorded day of Facebook's
// on 600 nodes, each event audited. BenchmarkRecordedDay plays the whole day.
func TestRecordedDayAudited(t *testing.T) {
	r := playDay(t, 0, time.Hour, time.Minute, 5000)
	t.Logf(
		"%d jobs, %d tasks, %d events, each audited; %v of virtual time, %d tasks at once",
		r.jobs,
		r.tasks,
		r.events,
		r.now,
		r.most,
	)
	if r.jobs < 20 || r.tasks < 500 {
		t.Errorf("only %d jobs with %d tasks", r.jobs, r.tasks)
	}
}

// BenchmarkRecordedDay plays all 24 hours, each event audited and everything
// every 5,000 events.
func BenchmarkRecordedDay(b *testing.B) {
	for b.Loop() {
		r := playDay(b, 0, 0, 30*time.Second, 5000)
		b.ReportMetric(float64(r.jobs), "jobs")
		b.ReportMetric(float64(r.tasks), "tasks")
		b.ReportMetric(float64(r.audit.Checks()), "audited-events")
		b.ReportMetric(r.now.Hours(), "virtual-hours")
	}
}
