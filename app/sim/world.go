// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/app/sim/overcommit"
	"github.com/creelrm/creel/internal/workload"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Config is the configuration of one run. Zero fields mean the default in brackets.
type Config struct {
	Seed      uint64
	Jobs      []workload.Job
	Durations *workload.Durations

	Subclusters int            // [3]
	Nodes       int            // of each subcluster [200]
	Uneven      bool           // the second subcluster has half of them, the third a third
	NodeSize    creel.Resource // [8192 MB, 8 cores]
	Members     []Member       // names and sizes [sc-1 and so on, from the fields above]
	Routers     int            // [2]
	Queues      queues.Spec    // of each subcluster
	Policies    []Policy
	Split       string  // of all queues, as a policy document's "split" [HomeFirst]
	Faults      *Faults // nil: none
	Places      float64 // fraction of applications that name hosts and racks, relaxed or strict
	Keeps       float64 // fraction of applications that retain their containers over attempts; their AMs die
	// Opportunistic is the fraction of the asked containers that are opportunistic; nodes queue these.
	Opportunistic float64
	Distributed   bool // proxies place the opportunistic containers (distributed scheduling)
	QueueRules    opportune.Rules
	// Overcommit is one of overcommit.Modes: nodes measure drawn uses of their containers, and lend what is unused [no
	// measurements]. AMs cannot tell lent containers from others, so Opportunistic must be 0.
	Overcommit  string
	Rebalancer  bool // plans are published, and routers and proxies follow them
	LoadWeights bool // Hadoop's load-based weights are published instead of plans
	Refusals    bool // submissions may be rejected for good, because policies and queues are a user's
	// Tree has federation-wide maxima and user limits, which escrow enforces; nil: none.
	Tree      *rebalancer.Tree
	SlowStart time.Duration // of the rebalancer [2 min]; below 0: all of a member's size counts at once

	NodeHeartbeat   time.Duration // between a node's heartbeats, besides one when a container ends [30 s]
	AMHeartbeat     time.Duration // between allocates of an AM without changes [1 s]
	MemberHeartbeat time.Duration // between heartbeats of a subcluster [10 s; 1 s in planned runs]
	Lease           time.Duration // of a subcluster's membership [30 s; 10 s]
	Poll            time.Duration // between reads of the store by routers and proxies [10 s; 2 s]
	Expiry          time.Duration // of silent AMs, nodes, and containers not started [10 min]

	AuditEvery int       // events between two full audits of every ResourceManager [1,000,000]
	Log        io.Writer // receives the event log as text; nil for none
	// Progress is called every 65,536 events; nil: never.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Virtual     time.Duration
	Events      int64
	Ended, Jobs int
}

// Member is one subcluster of a run.
type Member struct {
	ID       creel.SubclusterID
	Nodes    int
	NodeSize creel.Resource
	Queues   *queues.Spec // nil: Config.Queues
}

// MemberID is the id of a member without a configured name, from 0 on.
func MemberID(i int) creel.SubclusterID { return creel.SubclusterID(fmt.Sprintf("sc-%d", i+1)) }

// members returns the members by the configuration's sizes.
func (c *Config) members() (out []Member) {
	for i := range c.Subclusters {
		m := Member{ID: MemberID(i), Nodes: c.Nodes, NodeSize: c.NodeSize}
		if c.Uneven {
			m.Nodes = max(1, m.Nodes/(i+1))
		}
		out = append(out, m)
	}
	return out
}

// wholeTree is the queue tree in amounts of all configured members. It is constant: the auditor checks it at every
// event, whichever members are away.
func (c *Config) wholeTree() *rebalancer.Tree {
	if c.Tree == nil {
		return nil
	}
	var total creel.Resource
	for _, m := range c.Members {
		total = total.Add(m.NodeSize.Scale(int64(m.Nodes), 1))
	}
	t := *c.Tree
	t.Queues = slices.Clone(t.Queues)
	t.Resolve(total, 0)
	for i := range t.Queues {
		q := &t.Queues[i]
		q.GuaranteePercent, q.MaximumPercent, q.UserLimitPercent, q.PreemptionPercent = 0, 0, 0, 0
	}
	return &t
}

// planned reports whether members' queue reports are used. Then all times are the daemons' defaults, members report
// changes early, and the store notifies of writes; in other runs that would only take time.
func (c *Config) planned() bool { return c.Rebalancer || c.LoadWeights || c.Tree != nil }

func (c *Config) validate() error {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.NodeHeartbeat, 30*time.Second)
	def(&c.AMHeartbeat, time.Second)
	if c.planned() {
		def(&c.MemberHeartbeat, time.Second)
		def(&c.Lease, 10*time.Second)
		def(&c.Poll, 2*time.Second)
	}
	def(&c.MemberHeartbeat, 10*time.Second)
	def(&c.Lease, 30*time.Second)
	def(&c.Poll, 10*time.Second)
	def(&c.Expiry, 10*time.Minute)
	def(&c.SlowStart, 2*time.Minute)
	if len(c.Members) > 0 {
		c.Subclusters = len(c.Members)
	}
	if c.Subclusters == 0 {
		c.Subclusters = 3
	}
	if c.Nodes == 0 {
		c.Nodes = 200
	}
	if c.Routers == 0 {
		c.Routers = 2
	}
	if c.NodeSize.IsZero() {
		c.NodeSize = creel.NewResource(8192, 8)
	}
	if c.AuditEvery == 0 {
		c.AuditEvery = 1_000_000
	}
	switch {
	case len(c.Jobs) == 0 || c.Durations == nil:
		return errors.New("sim: there are no jobs to run")
	case c.Overcommit != "" && c.Opportunistic > 0:
		return errors.New("sim: give opportunistic containers or overcommitment")
	case c.Subclusters < 1 || c.Subclusters > 1000 || c.Nodes < 1 || c.Nodes > 60_000 || c.Routers < 1:
		return errors.New("sim: give 1 to 1,000 subclusters of 1 to 60,000 nodes, and a router")
	case c.NodeHeartbeat < 0 || c.AMHeartbeat < 0 || c.MemberHeartbeat < 0 ||
		c.Lease < 0 || c.Poll < 0 || c.Expiry < 0 || c.AuditEvery < 0:
		return errors.New("sim: times must not be negative")
	}
	if len(c.Members) == 0 {
		c.Members = c.members()
	}
	for _, m := range c.Members {
		if m.ID == "" || m.Nodes < 1 || m.Nodes > 60_000 || m.NodeSize.MemoryMB < 1 || m.NodeSize.VCores < 1 {
			return fmt.Errorf("sim: member %q has %d nodes of %s: give 1 to 60,000 with memory and cores", m.ID, m.Nodes, m.NodeSize)
		}
	}
	return nil
}

// World is one federation in virtual time.
type World struct {
	cfg       Config
	faults    Faults
	faulty    bool // faults are happening
	rnd       *rand.Rand
	lives     *rand.Rand      // of concurrent processes of ResourceManagers
	processes int64           // number of ResourceManager processes so far
	moving    *rand.Rand      // of moves of applications
	opportune *opportune.Play // nil: no opportunistic containers

	now    time.Time
	events heap
	seq    uint64
	count  int64
	hash   uint64
	line   []byte

	cuts       []bool          // paths between sites, see between
	late       []time.Duration // delays of the same paths
	lanes      map[lane]int64  // arrival of the latest message of a connection
	hosts      []*host
	store      *memory.State
	storeAt    *host
	ill        illness // of the store
	storeSkew  time.Duration
	lost       bool // the store has lost acknowledged writes
	emptied    int  // number of times it came back empty or in an earlier state, and was rebuilt
	recordings int  // number of proxies' recordings so far
	rebuilding bool // its homes are being collected
	backups    []backup
	taken      []*submission // accepted submissions, in order
	secret     []statestore.Key
	clusters   []*cluster
	proxies    []*proxy // the called one of each subcluster
	former     []*proxy // former ones that continue after their replacement
	routers    []*gateway
	user       *host    // submits applications
	planner    *planner // nil: no rebalancer
	nodes      map[creel.NodeID]*node
	hostsOf    map[string]*node
	audit      auditor

	signer  *subcluster.Signer
	away    map[away]bool // findings of the last round of reconcile
	stopped bool
}

// origin is the start of every virtual run; the date has no meaning, but is always the same.
var origin = time.Unix(1_250_000_000, 0).UTC()

// New makes a federation in which nothing has happened yet.
func New(cfg Config) (*World, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w := &World{
		cfg:     cfg,
		rnd:     rand.New(rand.NewPCG(cfg.Seed, 0x5eed)),
		lives:   source(cfg.Seed, "two ResourceManagers"),
		moving:  movesOf(cfg.Seed),
		now:     origin,
		hash:    offset64,
		cuts:    make([]bool, (cfg.Subclusters+1)*(cfg.Subclusters+1)),
		late:    make([]time.Duration, (cfg.Subclusters+1)*(cfg.Subclusters+1)),
		lanes:   map[lane]int64{},
		nodes:   map[creel.NodeID]*node{},
		hostsOf: map[string]*node{},
		secret:  []statestore.Key{{ID: 1, Secret: []byte("the simulated cluster's secret, of no worth")}},
	}
	w.audit.init(w)
	var err error
	if w.opportune, err = w.plays(); err != nil {
		return nil, err
	}
	if w.signer, err = subcluster.NewSigner(w.secret[0].Secret); err != nil {
		return nil, err
	}
	w.store = memory.NewState("sim", validate)
	w.storeAt = w.host("store", outside)
	w.user = w.host("clients", outside)
	if err := w.putPolicies(); err != nil {
		return nil, err
	}
	w.cfg.Tree = cfg.wholeTree()
	if err := w.putTree(); err != nil {
		return nil, err
	}
	for i := range cfg.Subclusters {
		c, err := newCluster(w, i)
		if err != nil {
			return nil, err
		}
		w.clusters = append(w.clusters, c)
		w.proxies = append(w.proxies, newProxy(w, i))
	}
	for i := range cfg.Routers {
		w.routers = append(w.routers, newRouter(w, i))
	}
	for _, p := range w.proxies {
		p.start()
	}
	for _, r := range w.routers {
		r.start()
	}
	if cfg.Rebalancer || cfg.LoadWeights {
		w.planner = newPlanner(w)
	}
	w.submitAll()
	if cfg.Faults != nil {
		w.faults = *cfg.Faults
		w.planFaults()
	}
	w.after(entitlementEvery, w.audit.entitlements)
	return w, nil
}

// plays returns what a run has of opportunistic containers. All that it draws comes from sources of its own.
func (w *World) plays() (*opportune.Play, error) {
	var draws *rand.Rand
	if w.cfg.Faults != nil {
		draws = source(w.cfg.Seed, "opportunistic queues")
	}
	var lending *overcommit.Play
	if w.cfg.Overcommit != "" {
		var err error
		last := w.cfg.Jobs[len(w.cfg.Jobs)-1].Submit
		if lending, err = overcommit.New(w.cfg.Overcommit, w.cfg.Seed, origin.Add(warmUp+last)); err != nil {
			return nil, err
		}
		if draws != nil {
			lending.Draw(source(w.cfg.Seed, "surges of use"), origin)
		}
	}
	p := opportune.New(w.cfg.Opportunistic, lending, draws, source(w.cfg.Seed, "lost promotions"))
	if p != nil {
		p.Distributed = w.cfg.Distributed
		p.Follow(w.cfg.QueueRules)
	}
	return p, nil
}

// losesPromotion draws whether an answer to an AM or a proxy is lost because it has promotions.
func (w *World) losesPromotion(answer *pb.AllocateResponseProto) bool {
	if !w.faulty || len(answer.GetUpdatedContainers()) == 0 || !w.opportune.Loses() {
		return false
	}
	w.audit.fault("answers with promotions lost")
	return true
}

func (w *World) host(name string, site int) *host {
	h := &host{name: name, number: int64(len(w.hosts)), site: site, up: true}
	w.hosts = append(w.hosts, h)
	return h
}

// cluster returns the cluster with a name.
func (w *World) cluster(id creel.SubclusterID) *cluster {
	for _, c := range w.clusters {
		if c.id == id {
			return c
		}
	}
	return nil
}

// at schedules do at a time, now at the earliest.
func (w *World) at(t time.Time, do func()) { w.push(t, runFunc(do)) }

func (w *World) push(t time.Time, do runner) {
	if t.Before(w.now) {
		t = w.now
	}
	w.seq++
	w.events.push(event{at: t.UnixNano(), seq: w.seq, do: do})
}

func (w *World) after(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

// on schedules do after a time, if the host is then still in the same epoch.
func (w *World) on(h *host, d time.Duration, do func()) {
	epoch := h.epoch
	w.after(d, func() {
		if h.epoch != epoch || !h.up {
			return
		}
		if w.asleep(h) {
			w.on(h, h.paused.Sub(w.now), do)
			return
		}
		do()
	})
}

// settleFor is the time for which the world continues after the last application: longer than any remainder may live
// by itself.
func (w *World) settleFor() time.Duration { return 2*w.cfg.Expiry + time.Minute }

// patience is the time without an ended application after which the run fails as stuck. It is longer than the expiry
// of a silent AM followed by that of a container that was never started.
func (w *World) patience() time.Duration { return 4*w.cfg.Expiry + 10*time.Minute }

// Run runs the world until all applications have ended and nothing of them is left, or the auditor finds a violation,
// or nothing progresses any more.
func (w *World) Run() *Result {
	var quiet, look time.Time // end of the last application; time of the next check whether anything is left
	nextFull := int64(w.cfg.AuditEvery)
	for len(w.events.items) > 0 && !w.audit.broken() {
		e := w.events.pop()
		w.now = time.Unix(0, e.at).UTC()
		w.count++
		e.do.run()
		if w.cfg.Progress != nil && w.count&(1<<16-1) == 0 {
			jobs := len(w.cfg.Jobs)
			w.cfg.Progress(Progress{w.now.Sub(origin), w.count, jobs - w.audit.awaited, jobs})
		}
		if w.count >= nextFull {
			nextFull = w.count + int64(w.cfg.AuditEvery)
			w.audit.full()
		}
		switch {
		case !w.audit.over():
			if w.audit.open > 0 && w.now.Sub(w.audit.moved) > w.patience() {
				w.audit.stuck()
			}
			continue
		case quiet.IsZero():
			quiet, look = w.now, w.now
			w.calm()
		}
		if w.now.Before(look) {
			continue
		}
		look = w.now.Add(time.Second)
		if w.now.Sub(quiet) > w.cfg.Expiry {
			w.killSecondRuns()
		}
		if w.audit.clean() || w.now.Sub(quiet) > w.settleFor() {
			break
		}
	}
	if !w.audit.broken() {
		w.audit.full()
		w.audit.final()
	}
	w.stopped = true
	for _, h := range w.hosts {
		h.killFlows() // their goroutines must not outlive the run
	}
	return w.result()
}

// FNV-1a, 64 bits: of the event log.
const offset64, prime64 = 0xcbf29ce484222325, 0x100000001b3

// mark writes a line into the event log: the time, an event, and two numbers.
func (w *World) mark(what string, a, b int64) {
	h := w.hash
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * prime64
	}
	for _, v := range [...]uint64{uint64(w.now.UnixNano()), uint64(a), uint64(b)} {
		h = (h ^ v) * prime64
		h ^= h >> 32
	}
	w.hash = h
	if w.cfg.Log != nil {
		w.line = fmt.Appendf(w.line[:0], "%12.6f %s %d %d\n", w.now.Sub(origin).Seconds(), what, a, b)
		_, _ = w.cfg.Log.Write(w.line) // a failure to write the log must not affect the run
	}
}

// say adds text to the log for readers; it is not hashed.
func (w *World) say(format string, args ...any) {
	if w.cfg.Log != nil {
		w.line = fmt.Appendf(w.line[:0], "%12.6f # %s\n", w.now.Sub(origin).Seconds(), fmt.Sprintf(format, args...))
		_, _ = w.cfg.Log.Write(w.line) // see mark
	}
}

// Result is the outcome of a run.
type Result struct {
	Hash       uint64 // of the event log
	Events     int64
	Fullest    float64          // highest use of any federation-wide maximum, as a fraction
	Invariants invariants.Tally // of the federation's queues, at every event
	Reported   invariants.Tally // the same ones and others, from members' reports, every 10 s
	Virtual    time.Duration
	Submitted  int
	Finished   int
	Failed     int
	Refused    int // by policies or queues, permanently
	Lost       int
	Doubled    int
	Granted    int64
	Checked    int64
	Broken     []string // violations, empty if there are none
	Faults     map[string]int64
	Unreceived map[string]int64 // grants that no AM received, by cause

	Waits       []time.Duration // from ask to grant, sorted
	Submits     []time.Duration // from a submission's due time to its acceptance, sorted
	Short       []float64       // queues' shortfalls of their federation-wide entitlement, sorted
	Queues      []QueueResult   // sorted by queue
	Subclusters []SubclusterResult

	Opportunistic opportune.Result
	Overcommit    *overcommit.Result // nil: nodes did not measure their use
}

// SubclusterResult is one subcluster's part.
type SubclusterResult struct {
	ID           creel.SubclusterID
	Applications int // applications with this home
	Records      int // of applications, including UAMs
	Containers   int64
	Preempted    int64 // of them, preempted
	Nodes        int
	Waits        []time.Duration // from ask to grant of its containers, sorted
	Used         []float64       // fractions in use (dominant share), one per entitlementEvery
}

// Records is the average number of records per application over all ResourceManagers: 1 if no application spans
// members.
func (r *Result) Records() float64 {
	homes, all := 0, 0
	for _, s := range r.Subclusters {
		homes, all = homes+s.Applications, all+s.Records
	}
	return float64(all) / max(1, float64(homes))
}

// Good reports whether every application ended once, or was rejected where that is permitted, and no invariant was
// violated.
func (r *Result) Good() bool {
	return len(r.Broken) == 0 && r.Submitted > 0 && r.Finished+r.Failed+r.Refused == r.Submitted &&
		r.Lost == 0 && r.Doubled == 0
}

// Quantile returns a quantile of sorted values; 0 for none.
func Quantile[T any](sorted []T, q float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
