// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/internal/pagemap"
	"github.com/creelrm/creel/internal/slab"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/subcluster/rm/logaggregation"
	"github.com/creelrm/creel/subcluster/rm/nodecommands"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Kinds of errors that YARN's protocols distinguish; each is also one of creel's kinds.
var (
	// ErrOutOfStep: a response id that is neither the next one nor a repeat
	// (InvalidApplicationMasterRequestException).
	ErrOutOfStep = fmt.Errorf("out of step: %w", creel.ErrInvalidRequest)
	// ErrAlreadyRegistered: a second registerApplicationMaster (the same exception).
	ErrAlreadyRegistered = fmt.Errorf("already registered: %w", creel.ErrInvalidRequest)
	// ErrInvalidRelease: InvalidContainerReleaseException.
	ErrInvalidRelease = fmt.Errorf("invalid release: %w", creel.ErrInvalidRequest)
	// ErrInvalidBlacklist: InvalidResourceBlacklistRequestException.
	ErrInvalidBlacklist = fmt.Errorf("invalid blacklist: %w", creel.ErrInvalidRequest)
)

// Machine is the ResourceManager of one subcluster: the calls that change it, and those of its Reader. It has one
// owner; see the package documentation for the owner's duties. Each part of its state has one owner among the types of
// its fields, which call one another through the machine.
type Machine struct {
	Reader // answers questions

	cfg   Config
	sched *sched.Scheduler // decides allocations
	sizes *amounts.Sizes   // the scheduler's
	now   int64            // ns since epoch, of the latest event
	count counts

	apps       appLife
	attempts   attemptLife
	containers containerLife
	victims    victimLife
	nodes      nodeLife
	labels     nodeLabels
	attributes nodeAttributes
	signals    signalStore
	logs       logBook
	disowned   disownedTable
	recovery   recovery

	opportunistic *opportunities // nil unless opportunistic containers are allocated
	activities    *activities    // nil unless they are asked for

	timers  timerQueue
	resumed int64 // end of the caller's last pause, ns; 0 without one
	out     outbox

	normalized []amounts.Vec // sizes of the asks in the current call
	prefetched int32         // sum of prefetched values, so that the compiler retains the reads
}

// appLife owns the applications: from their submission to the deletion of ended ones.
type appLife struct {
	m         *Machine
	byID      map[creel.ApplicationID]*app
	list      []*app            // in order of submission; forgotten ones are removed now and then
	forgotten int               // number of forgotten applications in list
	ended     []*app            // oldest first
	uams      map[*app]struct{} // unmanaged AMs of proxies that have not ended
	issued    issuedNumbers
}

// attemptLife owns the steps of attempts: from the ask for the AM's container to the end.
type attemptLife struct {
	m          *Machine
	heartbeats intrusive.List[*attempt]
	tokenEpoch uint32 // rises when every NM token must be sent again
}

// containerLife owns the containers: from their grant to their end, with their changes of size and execution type.
type containerLife struct {
	m          *Machine
	pool       slab.Pool[container]
	spare      []*container
	unlaunched pagemap.Map[container] // not seen running, by number: the first granted expires first
	serial     int64                  // of the last one that waits for its launch
}

// victimLife carries out the scheduler's decisions about victims: notice, pardon, and kill.
type victimLife struct{ m *Machine }

// nodeLife owns the nodes: from their first registration to the time when they are forgotten.
type nodeLife struct {
	m          *Machine
	byID       map[creel.NodeID]*node // without forgotten ones
	list       []*node                // by serial number, in order of first registration; including former ones
	former     map[creel.NodeID]*node // forgotten ones, until they register again; see SetTracked
	pool       slab.Pool[node]
	commands   nodecommands.Store
	heartbeats intrusive.List[*node]
}

// nodeLabels owns the labels of the cluster and of nodes.
type nodeLabels struct {
	m       *Machine
	set     labelStore // by calls; in force once they are durable
	inForce labelStore
	asked   []string // of the asks in the current call
}

// nodeAttributes owns the attributes of hosts.
type nodeAttributes struct {
	m       *Machine
	set     attributeStore // by calls
	inForce attributeStore // once they are durable
}

// signalStore has the signals that their nodes have not received yet.
type signalStore struct {
	m       *Machine
	waiting map[creel.ApplicationID][]Signal
}

// logBook applies nodes' reports on the logs of applications.
type logBook struct {
	m    *Machine
	room logaggregation.Messages // limits nodes' log messages
}

// recovery applies the journal's records and the nodes' reports after a restart.
type recovery struct {
	m       *Machine
	at      int64                       // its time, ns; 0 without one
	awaited map[creel.NodeID][]*attempt // attempts from the journal, until their AMs' nodes register
}

// counts are totals since the start.
type counts struct {
	apps, uams        sched.AppCounts // applications, and UAMs among them
	granted, released int64
	waits             waitstats.Histogram // from ask to grant, without AMs' containers
	containers        int32
	held              int32 // held applications

	amAllocation, amLaunch, amRegister Delay
}

// Delay counts the durations of one step.
type Delay struct {
	Count uint64
	Sum   time.Duration
}

// add counts a step from since to now, unless it began before the start of this machine.
func (d *Delay) add(now, since int64) {
	if since > 0 {
		d.Count++
		d.Sum += time.Duration(max(now-since, 0))
	}
}

// New makes a machine from a configuration, after checking it.
func New(cfg Config) (*Machine, error) {
	m := &Machine{cfg: cfg}
	m.Reader = Reader{m}
	m.apps = appLife{m: m, byID: map[creel.ApplicationID]*app{}, uams: map[*app]struct{}{}}
	m.attempts.m, m.containers.m, m.victims.m, m.recovery.m, m.logs.m = m, m, m, m, m
	m.nodes = nodeLife{m: m, byID: map[creel.NodeID]*node{}, former: map[creel.NodeID]*node{}}
	m.labels.m, m.attributes.m = m, m
	m.signals = signalStore{m: m, waiting: map[creel.ApplicationID][]Signal{}}
	m.disowned.out, m.out.volatile = &m.out, cfg.Volatile
	if cfg.MaxAttempts <= 0 {
		m.cfg.MaxAttempts = 2
	}
	if cfg.DiagnosticsLimit <= 0 {
		m.cfg.DiagnosticsLimit = 64 << 10
	}
	if cfg.MaxCompletedApps <= 0 {
		m.cfg.MaxCompletedApps = 1000
	}
	if cfg.LogTimeOut <= 0 { // Hadoop's default
		m.cfg.LogTimeOut = Defaults().LogTimeOut
	}
	m.logs.room.PerNode = cfg.LogMessages
	if cfg.RecoveredCompleted == 0 {
		m.cfg.RecoveredCompleted = m.cfg.MaxCompletedApps
	}
	further := make([]string, len(cfg.ResourceTypes))
	for i := range further {
		further[i] = cfg.ResourceTypes[i].Name
	}
	var err error
	m.sched, err = sched.New(&sched.Config{
		ResourceTypes: further,
		MinAllocation: cfg.MinAllocation,
		MaxAllocation: cfg.MaxAllocation,
		Increment:     cfg.Increment,
		Queues:        cfg.Queues,
		ReservedNodes: cfg.ReservedNodes,
		Containers:    machineContainers{m},
		PortInNames:   cfg.PortInNames,
	})
	if err != nil {
		return nil, err
	}
	m.sizes = m.sched.Sizes()
	if cfg.Opportunistic != nil {
		m.opportunistic = newOpportunities(m)
	}
	m.labels.set.put(&Labels{})
	m.labels.inForce.put(&Labels{})
	m.attributes.set.put(nil)
	m.attributes.inForce.put(nil)
	m.timers.init()
	m.nodes.heartbeats.Link = func(n *node) *intrusive.Link[*node] { return &n.heartbeatLink }
	m.attempts.heartbeats.Link = func(t *attempt) *intrusive.Link[*attempt] { return &t.heartbeatLink }
	return m, nil
}

// opportunities is the machine's part for opportunistic containers; it exists if their allocation is enabled.
type opportunities struct {
	m      *Machine
	nodes  *opportunistic.Nodes
	limit  *QueueLimit
	draws  uint64 // random numbers so far
	placed []opportunistic.Placement
	counts OpportunisticCounts
	lender *lender // nil: nothing is lent
	// tallies are the counts of queues with containers; nil before a limit asks for them.
	tallies map[*sched.Queue]*tally
	caps    map[creel.QueuePath]OpportunisticCap // parts of federation-wide maxima
	// userCaps are parts of federation-wide limits of each user.
	userCaps map[creel.QueuePath]OpportunisticUserCaps
}

// OpportunisticCap is this subcluster's part of a queue's federation-wide maximum of opportunistic containers.
type OpportunisticCap struct {
	Queue     creel.QueuePath
	Cap, Most int       // Most is the maximum of the federation
	Until     time.Time // then the queue gets no further container
}

// OpportunisticUserCaps are this subcluster's parts of the limit of each user of a queue. Each is the part of all users
// that are not in Users.
type OpportunisticUserCaps struct {
	Each  OpportunisticCap
	Users map[string]OpportunisticCap
}

// of returns the part of a user.
func (c *OpportunisticUserCaps) of(user string) OpportunisticCap {
	if own, has := c.Users[user]; has {
		return own
	}
	return c.Each
}

// inForce returns the cap at a time in ns.
func (c *OpportunisticCap) inForce(now int64) int {
	if now >= c.Until.UnixNano() {
		return 0
	}
	return c.Cap
}

// tally counts the opportunistic containers of a queue with its descendants.
type tally struct {
	containers int32
	users      map[string]int32
}

// lender gives asks for guaranteed containers opportunistic ones, on resources that a node's containers were allocated
// and do not use. Each heartbeat of a node that lends causes such a second pass, after the guaranteed one. The lent
// container becomes guaranteed without its AM, when its node has enough free resources and the limits of its queue
// admit it.
type lender struct {
	m    *Machine
	sums map[lentIn]*amounts.Vec // lent, by queue and its ancestors
	at   int64                   // time of sums, ns
}

// lentIn is a queue with the label of the nodes.
type lentIn struct {
	queue creel.QueuePath
	label string
}

// OpportunisticCounts are totals of opportunistic containers.
type OpportunisticCounts struct {
	Containers        int32 // now
	Waiting           int32 // of these, containers in queues of nodes
	Granted, Released int64
	NodeLocal, OnRack int64 // grants on a named host, and on a named rack
	Elsewhere         int64 // other grants
	Placed            int64 // grants by NodeManagers
	Promoted, Demoted int64
	Lent              int64                      // of Granted, on resources that others have allocated and do not use
	Killed            [opportunistic.Kills]int64 // by nodes, among Released
	Waits             waitstats.Histogram        // from ask to grant
	Limit             QueueLimit                 // of each node's queue
}

func newOpportunities(m *Machine) *opportunities {
	o := &opportunities{m: m}
	open := func(serial int32) bool { return m.nodes.list[serial].state == nodeRunning }
	o.nodes = opportunistic.NewNodes(*m.cfg.Opportunistic, m.sizes, open)
	o.limitChanged()
	if m.cfg.Opportunistic.MostLent > 0 {
		o.lender = &lender{m: m}
	}
	return o
}

func (o *opportunities) limitChanged() {
	length, wait := o.nodes.Limit()
	if o.limit == nil || o.limit.Length != length || o.limit.WaitMS != wait {
		o.limit = &QueueLimit{length, wait}
	}
}

// queueLimit returns the limit for a node's queue, nil for none.
func (o *opportunities) queueLimit(n *node) *QueueLimit {
	if o == nil {
		return nil
	}
	length, wait := o.nodes.LimitOf(n.Serial())
	switch own := (QueueLimit{length, wait}); own {
	case *o.limit:
		return o.limit
	case noQueueLimit:
		return &noQueueLimit
	default:
		return &own
	}
}

// noQueueLimit is shared: most nodes that shed only to shorter queues have no limit. It is not changed.
var noQueueLimit = QueueLimit{Length: -1, WaitMS: -1}

// at sets the time of an event; time does not run backwards.
func (m *Machine) at(now time.Time) {
	if t := now.UnixNano(); t > m.now {
		m.now = t
		m.sched.At(t)
	}
}

// settle ends every call: it grants freed resources and books the grants.
func (m *Machine) settle() {
	if grants := m.sched.Schedule(); len(grants) > 0 {
		m.containers.book(grants)
	}
}

func (m *Machine) ms() int64 { return m.now / int64(time.Millisecond) }

// nanos and instant convert times; both map zero to zero.
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

// Actions appends the actions since the last call to out, in their order.
func (m *Machine) Actions(out []Action) []Action { return m.out.take(out) }

// Saved reports that the Save action numbered seq, and all before it, is durable.
func (m *Machine) Saved(now time.Time, seq uint64) {
	m.at(now)
	m.out.saved(seq)
	m.settle()
}

// ForgetNMTokens makes the machine send new NM tokens to every AM, after a key was rolled.
func (m *Machine) ForgetNMTokens(now time.Time) {
	m.at(now)
	m.attempts.tokenEpoch++
}

func invalid(what, why, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Why: why, Try: try}
}
