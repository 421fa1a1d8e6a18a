// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// Kinds of refusal that YARN's protocols tell apart; each is also one of
// creel's kinds.
var (
	// ErrOutOfStep: a response id that is neither due nor a repetition
	// (InvalidApplicationMasterRequestException).
	ErrOutOfStep = fmt.Errorf("out of step: %w", creel.ErrInvalidRequest)
	// ErrAlreadyRegistered: a second registerApplicationMaster (the same exception).
	ErrAlreadyRegistered = fmt.Errorf("already registered: %w", creel.ErrInvalidRequest)
	// ErrInvalidRelease: InvalidContainerReleaseException.
	ErrInvalidRelease = fmt.Errorf("invalid release: %w", creel.ErrInvalidRequest)
	// ErrInvalidBlacklist: InvalidResourceBlacklistRequestException.
	ErrInvalidBlacklist = fmt.Errorf("invalid blacklist: %w", creel.ErrInvalidRequest)
	// ErrInvalidLabel: InvalidLabelResourceRequestException.
	ErrInvalidLabel = fmt.Errorf("invalid label: %w", creel.ErrInvalidResource)
)

// Machine is the ResourceManager of one subcluster. It has one owner; see the
// package documentation for the owner's duties.
type Machine struct {
	cfg   Config
	t     types
	least vec // smallest allocation
	most  vec // largest allocation
	step  vec
	sizes map[vecKey]*size
	sized []*size // by number
	now   int64   // ns since epoch, of the latest event

	// Room.
	nodes      map[creel.NodeID]*node
	nodeList   []*node // in order of first registration: by serial number, as are the next three
	inAll      []links // places in the cluster's index
	inRack     []links // and in that of the rack
	room       []int64 // free memory, -1 where nothing may go: what a search through a rack reads of each
	nodePool   []node  // slab of nodes not handed out yet
	notes      notes
	hosts      map[string]*host
	awaited    map[creel.NodeID][]*attempt // attempts of an earlier life, until the nodes of their masters register
	racks      map[string]*rack
	rackList   []*rack
	bigRacks   int // racks with an index of their own
	ix         index
	total      vec    // of nodes that run containers
	active     int    // nodes in state RUNNING or DECOMMISSIONING
	reserved   int    // nodes reserved
	growers    int    // increases that wait for room
	tokenEpoch uint32 // rises when every NM token is to be given anew

	// Demand.
	tree        tree
	apps        map[creel.ApplicationID]*app
	appList     []*app // in order of submission; forgotten ones leave now and then
	forgotten   int    // of them
	ended       []*app // oldest first
	disowned    disownedTable
	seq         int64           // submissions so far
	userRunning map[string]*int // running applications by user, where a bound exists
	blockers    int             // queues that somebody blocks; see passing.go
	waiting     int             // applications with asks outstanding that may run

	caps map[creel.QueuePath]*queueCap // nil without any

	// Work to settle at the end of a call.
	dirtyNodes []*node
	retries    []*queue
	outranked  []*queue // whose use changed since the order of service was asked for
	activate   []*queue
	delayed    heap[*want]
	opps       int64 // opportunities passed up, by all
	wantSerial int64
	places     []*place // not in use

	// Clocks.
	nodeBeats   list[*node]
	masterBeats list[*attempt]
	unlaunched  living // containers not seen running, by number: the first given is the first to expire
	waitSerial  int64
	resumed     int64 // when the caller's last pause ended, ns; 0 if it had none
	timers      heap[*timer]
	timerSeq    int64

	// Out.
	actions  []Action
	saveSeq  uint64
	saves    []pendingSave
	pool     []container // slab of containers not handed out yet
	spare    []*container
	sizesBuf []vec
	scratchQ []*queue
	scratchU []*user
	scratchA []*app
	warmth   int32 // what warm read, so that it is not left out
	count    counts
	auditor  *Auditor // that watches, nil for none
}

// counts are totals since the start.
type counts struct {
	submitted, completed, failed, killed int64
	granted, released                    int64
	containers, reservedContainers       int32
}

// New builds a machine from a configuration it checks.
func New(cfg Config) (*Machine, error) {
	m := &Machine{
		cfg:         cfg,
		sizes:       map[vecKey]*size{},
		nodes:       map[creel.NodeID]*node{},
		hosts:       map[string]*host{},
		racks:       map[string]*rack{},
		apps:        map[creel.ApplicationID]*app{},
		userRunning: map[string]*int{},
	}
	if cfg.MaxAttempts <= 0 {
		m.cfg.MaxAttempts = 2
	}
	if cfg.MaxCompletedApps <= 0 {
		m.cfg.MaxCompletedApps = 1000
	}
	if m.cfg.Increment.IsZero() {
		m.cfg.Increment = cfg.MinAllocation
	}
	var err error
	if m.t, err = newTypes(&cfg); err != nil {
		return nil, err
	}
	m.least, m.most, m.step = m.t.vec(cfg.MinAllocation), m.t.vec(cfg.MaxAllocation), m.t.vec(m.cfg.Increment)
	for i := 0; i < m.t.n; i++ {
		if m.least.at(i) < 0 || m.step.at(i) < 0 {
			return nil, invalid("negative minimum allocation or increment of "+m.t.names[i], "", "give 0 or more")
		}
		if i >= 2 && m.most.at(i) == 0 {
			m.most.set(i, unbounded) // types without a maximum have none
		}
		if m.most.at(i) < m.least.at(i) {
			return nil, invalid(
				fmt.Sprintf(
					"maximum allocation of %s is %d, below the minimum %d",
					m.t.names[i],
					m.most.at(i),
					m.least.at(i),
				),
				"",
				"raise the maximum or lower the minimum",
			)
		}
	}
	m.ix = index{
		all:      &m.nodeList,
		links:    &m.inAll,
		steps:    [2]int64{max(m.step.mem, 1), max(m.step.cpu, 1)},
		checkAll: m.t.check > 1,
		needMem:  m.least.mem > 0,
		needCPU:  m.t.check > 1 && m.least.cpu > 0,
	}
	m.ix.shift = [2]int8{shiftOf(m.ix.steps[mem]), shiftOf(m.ix.steps[cpu])}
	m.delayed = heap[*want]{
		less: func(a, b *want) bool { return a.relaxAt < b.relaxAt || a.relaxAt == b.relaxAt && a.serial < b.serial },
		slot: func(w *want) *int32 { return &w.slot },
	}
	m.timers = heap[*timer]{
		less: func(a, b *timer) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq },
		slot: func(t *timer) *int32 { return &t.slot },
	}
	m.nodeBeats.link = func(n *node) *link[*node] { return &n.beatLink }
	m.masterBeats.link = func(a *attempt) *link[*attempt] { return &a.beatLink }
	if err := cfg.Queues.Validate(); err != nil {
		return nil, err
	}
	if err := m.buildTree(&m.cfg.Queues); err != nil {
		return nil, err
	}
	return m, nil
}

// at takes note of the time of an event; time does not run backwards.
func (m *Machine) at(now time.Time) {
	if t := now.UnixNano(); t > m.now {
		m.now = t
	}
}

func (m *Machine) ms() int64 { return m.now / int64(time.Millisecond) }

// nanos and instant convert times; zero stands for none in both.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// Actions gives the actions since the last call, in order, appended to out.
func (m *Machine) Actions(out []Action) []Action {
	out = append(out, m.actions...)
	clear(m.actions)
	m.actions = m.actions[:0]
	return out
}

func (m *Machine) act(a Action) { m.actions = append(m.actions, a) }

// pendingSave is what goes on when a Save action is durable.
type pendingSave struct {
	seq  uint64
	then func()
}

// save emits a Save action and goes on with then when it is durable; at once
// when nothing is kept.
func (m *Machine) save(make func(seq uint64) Action, then func()) {
	if m.cfg.Volatile {
		then()
		return
	}
	m.saveSeq++
	m.act(make(m.saveSeq))
	m.saves = append(m.saves, pendingSave{m.saveSeq, then})
}

// Saved tells that the Save action numbered seq, and all before it, is durable.
func (m *Machine) Saved(now time.Time, seq uint64) {
	m.at(now)
	n := 0
	for n < len(m.saves) && m.saves[n].seq <= seq {
		then := m.saves[n].then
		n++
		then()
	}
	m.saves = append(m.saves[:0], m.saves[n:]...)
	m.settle()
}

// ForgetNMTokens makes every master get new NM tokens: a key was rolled.
func (m *Machine) ForgetNMTokens(now time.Time) {
	m.at(now)
	m.tokenEpoch++
}
