// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// Cluster is the nodes of a run and its times.
type Cluster struct {
	Nodes, Slots  int           // a slot runs one container
	NodeHeartbeat time.Duration // between heartbeats of a node
	AMHeartbeat   time.Duration // between heartbeats of an AM
	Message       time.Duration // of one message
}

// Hadoop returns a cluster with Hadoop's node heartbeat of 1 s, and AM heartbeats of 2 s: the two sum to 3 s.
func Hadoop(nodes, slots int) Cluster {
	return Cluster{
		Nodes: nodes, Slots: slots,
		NodeHeartbeat: time.Second, AMHeartbeat: 2 * time.Second, Message: time.Millisecond,
	}
}

// way is one way to give containers to tasks.
type way interface {
	// submit begins a job, whose first stage is ready.
	submit(j *job)
	// ready is called when a job's next stage begins.
	ready(j *job)
	// finished is called after a job's last task has ended.
	finished(j *job)
}

// job is a job that runs.
type job struct {
	Job
	index     int
	class     Class
	submitted time.Time
	stage     int
	waiting   []*task       // without a container, in the order of their numbers
	running   int           // tasks of the stage that have not ended, waiting ones included
	work      time.Duration // of the tasks that have not ended
	over      bool
	lost      []*task // whose containers have ended without success, before the AM has heard of it
}

// task is one task of a job.
type task struct {
	job     *job
	run     time.Duration
	asked   time.Time // its AM has asked for it; zero before
	started time.Time
	node    int // of its present process
	runs    bool
	over    bool
}

// take removes the first waiting task; nil for none.
func (j *job) take() *task {
	if len(j.waiting) == 0 {
		return nil
	}
	t := j.waiting[0]
	j.waiting = j.waiting[1:]
	return t
}

// world is one run: its clock, its events and its jobs.
type world struct {
	Cluster
	day    *Day
	now    time.Time
	events events
	serial uint64
	rnd    *rand.Rand
	way    way
	open   int   // jobs that have not ended
	busy   []int // running containers by node
	result Result
}

// origin is the start of every run.
var origin = time.Unix(1_250_000_000, 0).UTC()

// after schedules do.
func (w *world) after(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

func (w *world) at(t time.Time, do func()) {
	w.serial++
	heap.Push(&w.events, event{at: t, serial: w.serial, do: do})
}

// send schedules do after the delay of a message.
func (w *world) send(do func()) { w.after(w.Message, do) }

// every calls do at intervals for each node, from a random time on.
func (w *world) every(d time.Duration, do func(node int)) {
	for i := range w.Nodes {
		var heartbeat func()
		heartbeat = func() {
			do(i)
			w.after(d, heartbeat)
		}
		w.after(time.Duration(w.rnd.Int64N(int64(d))), heartbeat)
	}
}

// longest limits a run after its span: a way that leaves jobs behind must not run for ever.
const longest = 2 * time.Hour

// play runs until all jobs have ended, or the run is too long.
func (w *world) play() {
	for i := range w.day.Jobs {
		j := &job{Job: w.day.Jobs[i], index: i, submitted: origin.Add(w.day.Jobs[i].Submit)}
		j.class = j.Class()
		_, j.work = j.totals()
		w.open++
		w.at(j.submitted, func() {
			w.begin(j)
			w.way.submit(j)
		})
	}
	last := origin.Add(w.day.Span + longest)
	for w.open > 0 && len(w.events) > 0 && w.now.Before(last) && w.result.Broken == "" {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.result.Unfinished = w.open
}

// begin makes the tasks of a job's stage wait.
func (w *world) begin(j *job) {
	for _, d := range j.Stages[j.stage] {
		j.waiting = append(j.waiting, &task{job: j, run: d})
	}
	j.running = len(j.waiting)
}

func (w *world) check(good bool, format string, args ...any) {
	if !good && w.result.Broken == "" {
		w.result.Broken = fmt.Sprintf(format, args...)
	}
}

// starts records that a node runs a task.
func (w *world) starts(t *task, node int) {
	w.busy[node]++
	w.check(w.busy[node] <= w.Slots, "node %d runs %d containers in %d slots", node, w.busy[node], w.Slots)
	w.check(!t.runs && !t.over, "a task of job %d starts while it runs or after its end", t.job.index)
	t.started, t.node, t.runs = w.now, node, true
}

// ends records that a task has ended with success.
func (w *world) ends(t *task) {
	w.stops(t)
	j := t.job
	t.over = true
	j.running--
	j.work -= t.run
	w.result.ended(w, t)
	switch {
	case j.running > 0:
	case j.stage+1 < len(j.Stages):
		j.stage++
		w.begin(j)
		w.way.ready(j)
	default:
		j.over = true
		w.open--
		w.result.Classes[j.class].Times = append(w.result.Classes[j.class].Times, w.now.Sub(j.submitted))
		w.way.finished(j)
	}
}

// stops records that a node does not run a task any more.
func (w *world) stops(t *task) {
	w.check(t.runs && !t.over, "a task of job %d ends, and does not run", t.job.index)
	w.busy[t.node]--
	t.runs = false
}

// kills records that a node has killed a task that ran.
func (w *world) kills(t *task) {
	w.stops(t)
	w.result.Killed++
	w.result.KilledTime += w.now.Sub(t.started)
}

// event is something that happens at a time.
type event struct {
	at     time.Time
	serial uint64
	do     func()
}

// events is a heap by time; events of one time happen in the order in which they were scheduled.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	if c := e[i].at.Compare(e[k].at); c != 0 {
		return c < 0
	}
	return e[i].serial < e[k].serial
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}
