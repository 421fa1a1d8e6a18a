// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/nm/queue"
)

// Config describes a node. Zero durations mean YARN's defaults.
type Config struct {
	ID        creel.NodeID
	HTTPPort  int32
	Total     creel.Resource
	Version   string        // sent at registration
	KillDelay time.Duration // SIGTERM to SIGKILL, yarn.nodemanager.sleep-delay-before-sigkill.ms, 250 ms
	Forget    time.Duration // time for which an ended container is remembered, 10 minutes
	Queue     queue.Config  // for opportunistic containers
	// Overallocation lends what containers do not use, to opportunistic ones. It needs a queue, and Measured events.
	Overallocation overallocate.Config
}

// Validate returns the first error in a Config.
func (c Config) Validate() error {
	if c.ID.Host == "" || c.ID.Port <= 0 {
		return fmt.Errorf("node id %q needs a host and a port", c.ID)
	}
	if c.Total.IsNegative() || c.Total.MemoryMB == 0 {
		return fmt.Errorf("node %s offers %s: it needs memory", c.ID, c.Total)
	}
	return nil
}

// Event is an event of the node.
type Event interface{ event() }

// Start requests a container; its token is already verified.
type Start struct {
	Container Container
	Launch    *pb.ContainerLaunchContextProto
	RM        int64 // the ResourceManager's start time in the token
	Expires   time.Time
	NMKey     int32 // id of the key that signed the AM's NMToken
}

// Stop requests the end of a container, for its AM.
type Stop struct{ ID creel.ContainerID }

// Update changes a container's size and execution type by a new token.
type Update struct {
	ID        creel.ContainerID
	Version   int32
	Resource  creel.Resource
	Execution creel.ExecutionType
}

// Localized ends a Localize; a non-empty Failure is the reason why it failed.
type Localized struct {
	ID      creel.ContainerID
	Failure string
}

// Launched reports that the container's process has started.
type Launched struct{ ID creel.ContainerID }

// Exited reports that the container's process has ended.
type Exited struct {
	ID         creel.ContainerID
	Code       int32
	Diagnostic string
}

// Suspended ends a Pause; a non-empty Failure is the reason why the process runs on.
type Suspended struct {
	ID      creel.ContainerID
	Failure string
}

// Resumed ends a Resume.
type Resumed struct{ ID creel.ContainerID }

// Measured reports the use of the containers' processes, in no order. A node that gets no such event reports the sizes
// of its containers as their use.
type Measured struct{ Uses []Use }

// Use is the measured use of one container.
type Use struct {
	ID  creel.ContainerID
	Use overallocate.Amount
}

// Registered is the answer to a registration.
type Registered struct {
	Answer *pb.RegisterNodeManagerResponseProto
}

// Answered is the answer to a heartbeat.
type Answered struct {
	Answer *pb.NodeHeartbeatResponseProto
}

// Disconnected reports that the ResourceManager does not know the node any more, or has restarted: the node must
// register again.
type Disconnected struct{}

// Tick makes expired deadlines take effect.
type Tick struct{}

func (Start) event()        {}
func (Stop) event()         {}
func (Update) event()       {}
func (Localized) event()    {}
func (Launched) event()     {}
func (Exited) event()       {}
func (Suspended) event()    {}
func (Resumed) event()      {}
func (Measured) event()     {}
func (Registered) event()   {}
func (Answered) event()     {}
func (Disconnected) event() {}
func (Tick) event()         {}

// Action is an action for the driver.
type Action interface{ action() }

// Register sends Registration; the node is not Active before its answer.
type Register struct{}

// Halt ends the node: the ResourceManager has rejected it.
type Halt struct{ Reason string }

// Localize fetches the resources named in the container's launch context.
type Localize struct {
	Container *Container
	Launch    *pb.ContainerLaunchContextProto
}

// Launch starts the container's process.
type Launch struct {
	Container *Container
	Launch    *pb.ContainerLaunchContextProto
}

// Kill sends a signal to the container's process: 15 for a request, 9 for a forced end.
type Kill struct {
	ID     creel.ContainerID
	Signal int
}

// Pause stops the container's process without an end.
type Pause struct{ ID creel.ContainerID }

// Resume continues a paused process.
type Resume struct{ ID creel.ContainerID }

// SignalContainer forwards a command of the container's user.
type SignalContainer struct {
	ID      creel.ContainerID
	Command pb.SignalContainerCommandProto
}

// Cleanup removes a finished container's files from the node.
type Cleanup struct{ ID creel.ContainerID }

// AppEnded reports that an application will start no further containers here.
type AppEnded struct{ ID creel.ApplicationID }

func (Register) action()        {}
func (Halt) action()            {}
func (Localize) action()        {}
func (Launch) action()          {}
func (Kill) action()            {}
func (Pause) action()           {}
func (Resume) action()          {}
func (SignalContainer) action() {}
func (Cleanup) action()         {}
func (AppEnded) action()        {}

// Node is the machine. One owner calls it.
type Node struct {
	cfg        Config
	id         *pb.NodeIdProto // of cfg.ID, in every heartbeat
	used       creel.Resource
	queue      *queue.Scheduler // nil if the node runs no opportunistic containers
	usage      *usage           // nil before the first measurement
	grown      []*Container     // increases that the ResourceManager does not know of, for heartbeats
	grownSent  int              // of these, sent with the last heartbeat
	containers map[creel.ContainerID]*Container
	order      []*Container                     // live and unacknowledged containers by arrival, for heartbeats
	live       int                              // of these, containers that have not ended
	deadlines  int                              // of these, containers with a deadline
	orphans    bool                             // some of these may belong to an ended application
	recent     map[creel.ContainerID]completion // ended and removed from the heartbeats, for late requests
	expiries   []expiry                         // the entries of recent, in order of insertion
	apps       map[creel.ApplicationID]struct{}

	active     bool
	halted     bool
	response   int32
	interval   time.Duration
	rm         int64 // start time of the ResourceManager, which identifies it
	container  keys
	nm         keys
	attempts   map[creel.AttemptID]*pb.MasterKeyProto // key of each attempt's last accepted NMToken
	healthy    bool
	health     string
	healthTime time.Time

	actions []Action
}

// keys are the current and the previous master key; tokens of both are valid.
type keys struct{ current, previous *pb.MasterKeyProto }

func (k *keys) roll(next *pb.MasterKeyProto) {
	if next == nil || (k.current != nil && k.current.GetKeyId() == next.GetKeyId()) {
		return
	}
	k.previous, k.current = k.current, next
}

func (k *keys) find(id int32) *pb.MasterKeyProto {
	for _, key := range []*pb.MasterKeyProto{k.current, k.previous} {
		if key != nil && key.GetKeyId() == id {
			return key
		}
	}
	return nil
}

type completion struct {
	status *pb.ContainerStatusProto
	until  time.Time
}

// expiry is a remembered container and the time when it is dropped. All are remembered equally long, so the oldest is
// always first, and a heartbeat checks only expired ones.
type expiry struct {
	id    creel.ContainerID
	until time.Time
}

// New makes a node that has not registered yet.
func New(cfg Config) *Node {
	if cfg.KillDelay == 0 {
		cfg.KillDelay = 250 * time.Millisecond
	}
	if cfg.Forget == 0 {
		cfg.Forget = 10 * time.Minute
	}
	n := &Node{
		cfg:        cfg,
		id:         pb.FromNodeID(cfg.ID),
		containers: map[creel.ContainerID]*Container{},
		recent:     map[creel.ContainerID]completion{},
		apps:       map[creel.ApplicationID]struct{}{},
		attempts:   map[creel.AttemptID]*pb.MasterKeyProto{},
		interval:   time.Second,
		healthy:    true,
	}
	if cfg.Queue.Enabled() {
		n.queue = queue.New(cfg.Queue, cfg.Total)
		n.queue.SetDelay(n.interval)
	}
	return n
}

// ID is the node's name.
func (n *Node) ID() creel.NodeID { return n.cfg.ID }

// Active reports whether the ResourceManager has accepted the node.
func (n *Node) Active() bool { return n.active }

// Interval is the time between heartbeats, as set by the last answer.
func (n *Node) Interval() time.Duration { return n.interval }

// RM identifies the ResourceManager that the node is registered with.
func (n *Node) RM() int64 { return n.rm }

// Used is the size of the containers that have not ended.
func (n *Node) Used() creel.Resource { return n.used }

// Len is the number of containers that have not ended.
func (n *Node) Len() int { return n.live }

// SetHealth sets the node's health for the next heartbeats.
func (n *Node) SetHealth(now time.Time, healthy bool, report string) {
	n.healthy, n.health, n.healthTime = healthy, report, now
}

// ContainerKey is the master key that signs container tokens under this id, or nil.
func (n *Node) ContainerKey(id int32) *pb.MasterKeyProto { return n.container.find(id) }

// NMKey is the master key that signs an attempt's NMToken with this id, or nil. A replaced key still serves the
// attempts that started containers with it.
func (n *Node) NMKey(attempt creel.AttemptID, id int32) *pb.MasterKeyProto {
	if k := n.nm.find(id); k != nil {
		return k
	}
	if k := n.attempts[attempt]; k != nil && k.GetKeyId() == id {
		return k
	}
	return nil
}

// Step processes one event. The returned slice is valid until the next Step.
func (n *Node) Step(now time.Time, e Event) ([]Action, error) {
	n.actions = n.actions[:0]
	var err error
	switch e := e.(type) {
	case Start:
		err = n.start(now, e)
	case Stop:
		err = n.stop(now, e)
	case Update:
		err = n.update(e)
	case Localized:
		n.localized(now, e)
	case Launched:
		if c := n.containers[e.ID]; c != nil && c.State == Scheduled {
			c.State = Running
			c.changed()
		}
	case Exited:
		n.exited(now, e)
	case Suspended:
		n.suspended(now, e)
	case Resumed:
		if c := n.containers[e.ID]; c != nil && c.State == Resuming {
			c.State = Running
			c.changed()
		}
	case Measured:
		n.measured(now, e.Uses)
	case Registered:
		n.registered(now, e.Answer)
	case Answered:
		n.answered(now, e.Answer)
	case Disconnected:
		n.resync()
	case Tick:
		n.tick(now)
	default:
		err = fmt.Errorf("%w: a node knows no event %T", creel.ErrInvalidRequest, e)
	}
	if n.queue != nil {
		n.settle(now)
	}
	return n.actions, err
}

func (n *Node) do(a Action) { n.actions = append(n.actions, a) }

func refuse(kind error, what string, args ...any) error {
	return &creel.Error{Kind: kind, What: fmt.Sprintf(what, args...)}
}

func (n *Node) start(now time.Time, e Start) error {
	id := e.Container.ID
	switch {
	case !n.active:
		return refuse(creel.ErrUnavailable, "node %s is registering with its ResourceManager; try again", n.cfg.ID)
	case e.RM != n.rm:
		return refuse(creel.ErrStale, "Container %s rejected as it is allocated by a previous RM", id)
	case now.After(e.Expires):
		return refuse(
			creel.ErrNotPermitted,
			"Unauthorized request to start container.\nThis token is expired. current time is %d found %d",
			now.UnixMilli(),
			e.Expires.UnixMilli(),
		)
	case n.containers[id] != nil:
		return refuse(creel.ErrConflict, "Container %s already is running on this node!!", id)
	}
	if _, again := n.recent[id]; again {
		return refuse(creel.ErrConflict, "Attempt to relaunch the same container with id %s.", id)
	}
	c := e.Container
	c.State, c.ExitCode, c.launch = Localizing, ExitInvalid, e.Launch
	n.containers[id] = &c
	n.order = append(n.order, &c)
	n.live++
	n.used = n.used.Add(c.Resource)
	n.apps[id.Attempt.Application] = struct{}{}
	if key := n.NMKey(id.Attempt, e.NMKey); key != nil {
		n.attempts[id.Attempt] = key
	}
	n.do(Localize{Container: &c, Launch: e.Launch})
	return nil
}

func (n *Node) stop(now time.Time, e Stop) error {
	if c := n.containers[e.ID]; c != nil {
		n.kill(now, c, ExitKilledByAM)
		return nil
	}
	if _, ended := n.recent[e.ID]; ended {
		return nil
	}
	return refuse(creel.ErrContainerNotFound, "Container %s is not handled by this NodeManager", e.ID)
}

func (n *Node) update(e Update) error {
	c := n.containers[e.ID]
	switch {
	case c == nil || c.State == Done || c.State == Killing:
		return refuse(creel.ErrContainerNotFound, "Container %s is not running on this NodeManager", e.ID)
	case e.Version <= c.Version:
		return refuse(
			creel.ErrInvalidRequest,
			"Container %s has version %d, the token to update it has %d",
			e.ID,
			c.Version,
			e.Version,
		)
	}
	n.apply(c, e)
	return nil
}

func (n *Node) localized(now time.Time, e Localized) {
	c := n.containers[e.ID]
	switch {
	case c == nil || c.State == Done:
	case e.Failure != "":
		n.finish(now, c, -1000, e.Failure)
	case c.State == Localizing:
		c.State = Scheduled
		c.changed()
		n.schedule(now, c)
	}
}

func (n *Node) launch(c *Container) {
	n.do(Launch{Container: c, Launch: c.launch})
	if retryPolicy(c.launch) == nil {
		c.launch = nil // so that a node with a thousand containers retains none of their contexts
	}
}

func (n *Node) exited(now time.Time, e Exited) {
	c := n.containers[e.ID]
	if c == nil || c.State == Done {
		return
	}
	if c.State == Killing {
		n.finish(now, c, c.killCode, cmp.Or(c.Diagnostic, killText(c.killCode))+e.Diagnostic)
		return
	}
	if at, again := c.retry(now, e.Code); again {
		c.State = Relaunching
		n.deadline(c, at)
		c.changed()
		n.tick(now)
		return
	}
	n.finish(now, c, e.Code, e.Diagnostic)
}

func (n *Node) finish(now time.Time, c *Container, code int32, diagnostic string) {
	if c.State != Done {
		n.live--
	}
	c.State, c.ExitCode, c.Diagnostic, c.launch = Done, code, diagnostic, nil
	n.deadline(c, time.Time{})
	c.changed()
	n.used = n.used.Sub(c.Resource)
	if c.place != nil {
		if code == 0 && !c.AM {
			n.queue.Ran(c.place, now.Sub(c.place.Started))
		}
		n.queue.Remove(c.place)
	}
	n.do(Cleanup{ID: c.ID})
}

// kill ends a container on request; code is the exit code to report.
func (n *Node) kill(now time.Time, c *Container, code int32) { n.killFor(now, c, code, "") }

// killFor is kill with a text for reports; an empty one means the code's.
func (n *Node) killFor(now time.Time, c *Container, code int32, text string) {
	switch {
	case c.State == Done || c.State == Killing:
		return
	case !c.hasProcess(): // nothing to wait for
		n.finish(now, c, code, cmp.Or(text, killText(code)))
		return
	case c.place != nil && c.place.Waiting(): // paused
		n.queue.Remove(c.place)
	}
	c.State, c.killCode, c.Diagnostic = Killing, code, text
	n.deadline(c, now.Add(n.cfg.KillDelay))
	c.changed()
	n.do(Kill{ID: c.ID, Signal: 15})
}

// deadline sets a container's deadline; zero removes it.
func (n *Node) deadline(c *Container, at time.Time) {
	if !c.deadline.IsZero() {
		n.deadlines--
	}
	if !at.IsZero() {
		n.deadlines++
	}
	c.deadline = at
}

// NextDeadline is the time at which the next Tick has an effect; zero if nothing waits.
func (n *Node) NextDeadline() time.Time {
	var first time.Time
	if n.deadlines == 0 {
		return first // the usual case: only killed and relaunched containers have one
	}
	for _, c := range n.order {
		if !c.deadline.IsZero() && (first.IsZero() || c.deadline.Before(first)) {
			first = c.deadline
		}
	}
	return first
}

func (n *Node) tick(now time.Time) {
	if n.deadlines == 0 {
		return
	}
	for _, c := range n.order {
		if c.deadline.IsZero() || c.deadline.After(now) {
			continue
		}
		n.deadline(c, time.Time{})
		switch c.State {
		case Killing:
			n.do(Kill{ID: c.ID, Signal: 9})
		case Relaunching:
			c.State = Scheduled
			c.changed()
			n.launch(c)
		}
	}
}

// Containers lists the remembered containers in order of arrival.
func (n *Node) Containers() []*Container {
	return slices.Clone(n.order)
}

// Status is a container's state for its AM.
func (n *Node) Status(id creel.ContainerID) (*pb.ContainerStatusProto, error) {
	if c := n.containers[id]; c != nil {
		return c.statusProto(), nil
	}
	if e, ok := n.recent[id]; ok {
		return e.status, nil
	}
	return nil, refuse(creel.ErrContainerNotFound, "Container %s is not handled by this NodeManager", id)
}

// forgetOld drops expired records of ended containers.
func (n *Node) forgetOld(now time.Time) {
	gone := 0
	for gone < len(n.expiries) && now.After(n.expiries[gone].until) {
		f := n.expiries[gone]
		if e, ok := n.recent[f.id]; ok && e.until.Equal(f.until) {
			delete(n.recent, f.id)
		}
		gone++
	}
	if n.expiries = n.expiries[gone:]; len(n.expiries) == 0 {
		n.expiries = nil
	}
}

// forget removes containers whose completion the ResourceManager has acknowledged.
func (n *Node) forget(now time.Time, gone func(*Container) bool) {
	n.order = slices.DeleteFunc(n.order, func(c *Container) bool {
		if c.State != Done || !gone(c) {
			return false
		}
		until := now.Add(n.cfg.Forget)
		n.recent[c.ID] = completion{status: c.statusProto(), until: until}
		n.expiries = append(n.expiries, expiry{c.ID, until})
		delete(n.containers, c.ID)
		return true
	})
}
