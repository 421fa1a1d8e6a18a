// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// Priorities of a MapReduce AM's asks, as sent by Hadoop.
const (
	FailedMapPriority int32 = 5
	ReducePriority    int32 = 10
	MapPriority       int32 = 20
)

// Ask is one absolute request: at Priority the AM still wants Count containers of Size on Name ("*", a rack or a host).
type Ask struct {
	Priority int32
	Name     string
	Count    int32
	Size     creel.Resource
}

// Grant is a container granted for an ask of Priority.
type Grant struct {
	Container creel.ContainerID
	Node      creel.NodeID
	Priority  int32
}

// Completion is a container that completed with an exit status; 0 is success.
type Completion struct {
	Container   creel.ContainerID
	Exit        int32
	Diagnostics string // as reported by its node or ResourceManager
}

// Start orders the caller to run a task in a granted container for a time.
type Start struct {
	Grant    Grant
	Kind     TaskKind
	Task     int
	Attempt  int
	Duration time.Duration
	Exit     int32 // the exit status with which it shall end
}

// Steps are the AM's orders after an event. Asks are the changed ones.
type Steps struct {
	Asks     []Ask
	Starts   []Start
	Releases []creel.ContainerID
	Finish   bool // all tasks are done, or one failed too often
	Failed   bool // with Finish: the job failed
	// Diagnostics is the AM's final message; "" means its driver's message.
	Diagnostics string
}

// AMConfig configures the asks of an AM.
type AMConfig struct {
	MapSize, ReduceSize creel.Resource
	SlowStart           float64 // fraction of finished maps before the AM asks for reduces; MapReduce's default 0.05
	MaxAttempts         int     // a task failing this often fails the job; MapReduce's default 4
	FailOneIn           int     // one task attempt in this many fails, drawn by seed; 0 is none
}

// DefaultAMConfig is MapReduce's default: 1,024 MB and a core for each map and each reduce, slow start at 5%, four
// attempts.
func DefaultAMConfig() AMConfig {
	return AMConfig{
		MapSize:     creel.NewResource(1024, 1),
		ReduceSize:  creel.NewResource(1024, 1),
		SlowStart:   0.05,
		MaxAttempts: 4,
	}
}

// AM simulates the application master of one job. It performs no I/O, and has one owner. The owner must deliver each
// event once, and carry out the Steps.
type AM struct {
	job  Job
	conf AMConfig
	from *Durations

	maps, reduces, retries pool
	running                map[creel.ContainerID]task
	attempts               map[task]int // failed attempts, only for tasks that failed
	started                bool
	finished               bool
	sent                   map[int32]int32 // priority -> the ResourceManager's current count
}

// task names one task of the job.
type task struct {
	kind  TaskKind
	index int
}

// pool counts tasks of one priority: waiting to be granted, running, done.
type pool struct {
	waiting []int // indices of tasks without a container
	done    int
	total   int
}

// NewAM makes the AM of a job. Tasks draw their durations from d.
func NewAM(job Job, conf AMConfig, d *Durations) *AM {
	m := &AM{
		job:      job,
		conf:     conf,
		from:     d,
		running:  map[creel.ContainerID]task{},
		attempts: map[task]int{},
		sent:     map[int32]int32{},
	}
	m.maps = newPool(job.Maps)
	m.reduces = newPool(job.Reduces)
	return m
}

func newPool(n int) pool {
	p := pool{waiting: make([]int, n), total: n}
	for i := range p.waiting {
		p.waiting[i] = n - 1 - i // taken from the end: task 0 comes first
	}
	return p
}

// Job returns the AM's job.
func (m *AM) Job() Job { return m.job }

// Outstanding returns the number of containers that the AM still wants, and the number that run.
func (m *AM) Outstanding() (wanted, running int) {
	w := len(m.retries.waiting) + len(m.maps.waiting)
	if m.reducesOpen() {
		w += len(m.reduces.waiting)
	}
	return w, len(m.running)
}

// Successor returns the AM of the job's next attempt, if that attempt knows this one's state and takes over its
// containers. Its first event is Registered.
func (m *AM) Successor() *AM {
	next := *m
	next.started, next.finished = false, false
	next.running, next.attempts, next.sent = maps.Clone(m.running), maps.Clone(m.attempts), map[int32]int32{}
	for _, p := range []*pool{&next.maps, &next.reduces, &next.retries} {
		p.waiting = slices.Clone(p.waiting)
	}
	return &next
}

// Runs reports whether a task runs in a container, by the AM's state.
func (m *AM) Runs(c creel.ContainerID) bool {
	_, ok := m.running[c]
	return ok
}

// Registered is the first event, and the event after the ResourceManager lost its state of this AM. The AM sends all
// asks again.
func (m *AM) Registered() Steps {
	m.started = true
	clear(m.sent)
	return m.settle(Steps{})
}

// Allocated handles the answer to one allocate call.
func (m *AM) Allocated(grants []Grant, ended []Completion) Steps {
	var s Steps
	for _, e := range ended {
		m.end(e, &s)
	}
	for _, g := range grants {
		m.grant(g, &s)
	}
	return m.settle(s)
}

// grant assigns a container to a waiting task, or releases it.
func (m *AM) grant(g Grant, s *Steps) {
	if m.finished {
		s.Releases = append(s.Releases, g.Container)
		return
	}
	var p *pool
	kind := Map
	switch g.Priority {
	case FailedMapPriority:
		p = &m.retries
	case ReducePriority:
		p, kind = &m.reduces, Reduce
	case MapPriority:
		p = &m.maps
	}
	if p == nil || len(p.waiting) == 0 {
		s.Releases = append(s.Releases, g.Container) // more containers than requested
		return
	}
	index := p.waiting[len(p.waiting)-1]
	p.waiting = p.waiting[:len(p.waiting)-1]
	if m.sent[g.Priority] > 0 {
		m.sent[g.Priority]-- // the ResourceManager lowered its own count
	}
	t := task{kind, index}
	m.running[g.Container] = t
	attempt := m.attempts[t]
	start := Start{Grant: g, Kind: kind, Task: index, Attempt: attempt, Duration: m.job.Duration(m.from, kind, index)}
	if n := m.conf.FailOneIn; n > 0 &&
		mix(m.job.Seed, uint64(m.job.Index), uint64(kind), uint64(index), uint64(attempt), 'f')%uint64(n) == 0 {
		start.Exit = 1
	}
	s.Starts = append(s.Starts, start)
}

// end records one completed container. It skips unknown containers, such as a released surplus.
func (m *AM) end(e Completion, s *Steps) {
	t, ok := m.running[e.Container]
	if !ok {
		return
	}
	delete(m.running, e.Container)
	if e.Exit == creel.ExitSuccess {
		m.pool(t.kind).done++
		return
	}
	// A container that the cluster ended does not count against its task. One whose process failed counts, as in
	// MapReduce.
	if e.Exit > 0 {
		m.attempts[t]++
		if m.attempts[t] >= m.conf.MaxAttempts {
			s.Failed = true
		}
	}
	if t.kind == Map {
		m.retries.waiting = append(m.retries.waiting, t.index)
	} else {
		m.reduces.waiting = append(m.reduces.waiting, t.index)
	}
}

// StartFailed records a container that could not be started at its node.
func (m *AM) StartFailed(c creel.ContainerID) Steps {
	var s Steps
	if _, ok := m.running[c]; ok {
		m.end(Completion{Container: c, Exit: creel.ExitAborted}, &s)
		s.Releases = append(s.Releases, c)
	}
	return m.settle(s)
}

func (m *AM) pool(kind TaskKind) *pool {
	if kind == Reduce {
		return &m.reduces
	}
	return &m.maps
}

func (m *AM) reducesOpen() bool {
	return float64(m.maps.done) >= m.conf.SlowStart*float64(m.maps.total)
}

// settle determines the changed absolute asks, and whether the job is over.
func (m *AM) settle(s Steps) Steps {
	if m.finished || !m.started {
		return s
	}
	if s.Failed || m.maps.done == m.maps.total && m.reduces.done == m.reduces.total {
		m.finished = true
		s.Finish = true
		for c := range m.running {
			s.Releases = append(s.Releases, c)
		}
		slices.SortFunc(s.Releases, creel.ContainerID.Compare)
		clear(m.running)
	}
	wanted := [...]struct {
		priority int32
		count    int
		size     creel.Resource
	}{
		{FailedMapPriority, len(m.retries.waiting), m.conf.MapSize},
		{ReducePriority, len(m.reduces.waiting), m.conf.ReduceSize},
		{MapPriority, len(m.maps.waiting), m.conf.MapSize},
	}
	for _, w := range wanted {
		n := int32(w.count)
		if m.finished || w.priority == ReducePriority && !m.reducesOpen() {
			n = 0
		}
		if n != m.sent[w.priority] {
			m.sent[w.priority] = n
			s.Asks = append(s.Asks, Ask{Priority: w.priority, Name: "*", Count: n, Size: w.size})
		}
	}
	return s
}
