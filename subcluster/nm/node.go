// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Config describes a node. The zero durations take YARN's defaults.
type Config struct {
	ID        creel.NodeID
	HTTPPort  int32
	Total     creel.Resource
	Version   string        // sent at registration
	KillDelay time.Duration // SIGTERM to SIGKILL, yarn.nodemanager.sleep-delay-before-sigkill.ms, 250 ms
	Forget    time.Duration // a finished container is remembered for so long, 10 minutes
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

// Event is something that happened to the node.
type Event interface{ event() }

// Start asks for a container, its token already verified.
type Start struct {
	Container Container
	Launch    *pb.ContainerLaunchContextProto
	RM        int64 // the ResourceManager's start time in the token
	Expires   time.Time
	NMKey     int32 // id of the key that signed the AM's NMToken
}

// Stop asks for a container's end, on behalf of its AM.
type Stop struct{ ID creel.ContainerID }

// Resize changes the size of a running container by a new token.
type Resize struct {
	ID        creel.ContainerID
	Version   int32
	Resource  creel.Resource
	Execution creel.ExecutionType
}

// Localized ends a Localize; a non-empty Failure is why it could not be done.
type Localized struct {
	ID      creel.ContainerID
	Failure string
}

// Launched reports that the container's process runs.
type Launched struct{ ID creel.ContainerID }

// Exited reports that the container's process has ended.
type Exited struct {
	ID         creel.ContainerID
	Code       int32
	Diagnostic string
}

// Registered is the answer to a registration.
type Registered struct {
	Answer *pb.RegisterNodeManagerResponseProto
}

// Answered is the answer to a heartbeat.
type Answered struct {
	Answer *pb.NodeHeartbeatResponseProto
}

// Disconnected reports that the ResourceManager does not know the node any more, or has restarted: register again.
type Disconnected struct{}

// Tick lets deadlines that have passed take effect.
type Tick struct{}

func (Start) event()        {}
func (Stop) event()         {}
func (Resize) event()       {}
func (Localized) event()    {}
func (Launched) event()     {}
func (Exited) event()       {}
func (Registered) event()   {}
func (Answered) event()     {}
func (Disconnected) event() {}
func (Tick) event()         {}

// Action is something the driver must do.
type Action interface{ action() }

// Register sends Registration; until its answer the node is not Active.
type Register struct{}

// Halt ends the node: the ResourceManager does not want it.
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

// Kill sends a signal to the container's process: 15 asks, 9 does not.
type Kill struct {
	ID     creel.ContainerID
	Signal int
}

// SignalContainer forwards a command of the container's user.
type SignalContainer struct {
	ID      creel.ContainerID
	Command pb.SignalContainerCommandProto
}

// Cleanup removes a finished container's files from the node.
type Cleanup struct{ ID creel.ContainerID }

// AppEnded reports that an application will start no more containers here.
type AppEnded struct{ ID creel.ApplicationID }

func (Register) action()        {}
func (Halt) action()            {}
func (Localize) action()        {}
func (Launch) action()          {}
func (Kill) action()            {}
func (SignalContainer) action() {}
func (Cleanup) action()         {}
func (AppEnded) action()        {}

// Node is the machine. One owner calls it.
type Node struct {
	cfg        Config
	id         *pb.NodeIdProto // of cfg.ID, in every heartbeat
	used       creel.Resource
	containers map[creel.ContainerID]*Container
	order      []*Container                     // live and unacknowledged containers by arrival, for heartbeats
	live       int                              // of them, those that have not finished
	deadlines  int                              // of them, those with a deadline
	orphans    bool                             // of them, some may be of an application that has ended
	recent     map[creel.ContainerID]completion // finished and forgotten by the protocol, for late askers
	expiries   []expiry                         // the entries of recent, by time of insertion
	apps       map[creel.ApplicationID]struct{}

	active     bool
	halted     bool
	response   int32
	interval   time.Duration
	rm         int64 // identifier of the ResourceManager, its start time
	container  keys
	nm         keys
	attempts   map[creel.AttemptID]*pb.MasterKeyProto // key of each attempt's last accepted NMToken
	healthy    bool
	health     string
	healthTime time.Time

	actions []Action
}

// keys are the current and the former master key; a token of either is good.
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

// expiry is a remembered container and the time when it is forgotten. All last equally long, so that the oldest is
// always the first to go and a heartbeat checks no more than the expired ones.
type expiry struct {
	id    creel.ContainerID
	until time.Time
}

// New makes a node that has yet to register.
func New(cfg Config) *Node {
	if cfg.KillDelay == 0 {
		cfg.KillDelay = 250 * time.Millisecond
	}
	if cfg.Forget == 0 {
		cfg.Forget = 10 * time.Minute
	}
	return &Node{
		cfg:        cfg,
		id:         pb.FromNodeID(cfg.ID),
		containers: map[creel.ContainerID]*Container{},
		recent:     map[creel.ContainerID]completion{},
		apps:       map[creel.ApplicationID]struct{}{},
		attempts:   map[creel.AttemptID]*pb.MasterKeyProto{},
		interval:   time.Second,
		healthy:    true,
	}
}

// ID is the node's name.
func (n *Node) ID() creel.NodeID { return n.cfg.ID }

// Active reports whether the ResourceManager has accepted the node.
func (n *Node) Active() bool { return n.active }

// Interval is the time between heartbeats that the last answer asked for.
func (n *Node) Interval() time.Duration { return n.interval }

// RM is the identifier of the ResourceManager the node is registered with.
func (n *Node) RM() int64 { return n.rm }

// Used is the size of the containers that have not finished.
func (n *Node) Used() creel.Resource { return n.used }

// Len is the number of containers that have not finished.
func (n *Node) Len() int { return n.live }

// SetHealth sets the node's health for the next heartbeats.
func (n *Node) SetHealth(now time.Time, healthy bool, report string) {
	n.healthy, n.health, n.healthTime = healthy, report, now
}

// ContainerKey is the master key that signs container tokens under this id, or nil.
func (n *Node) ContainerKey(id int32) *pb.MasterKeyProto { return n.container.find(id) }

// NMKey is the master key that signs an attempt's NMToken under this id, or
// nil. A key that has been rolled away still serves the attempts that started
// containers under it.
func (n *Node) NMKey(attempt creel.AttemptID, id int32) *pb.MasterKeyProto {
	if k := n.nm.find(id); k != nil {
		return k
	}
	if k := n.attempts[attempt]; k != nil && k.GetKeyId() == id {
		return k
	}
	return nil
}

// Step takes in one event. The returned slice is valid until the next Step.
func (n *Node) Step(now time.Time, e Event) ([]Action, error) {
	n.actions = n.actions[:0]
	var err error
	switch e := e.(type) {
	case Start:
		err = n.start(now, e)
	case Stop:
		err = n.stop(now, e)
	case Resize:
		err = n.resize(e)
	case Localized:
		n.localized(now, e)
	case Launched:
		if c := n.containers[e.ID]; c != nil && c.State == Scheduled {
			c.State = Running
			c.changed()
		}
	case Exited:
		n.exited(now, e)
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

func (n *Node) resize(e Resize) error {
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
	n.used = n.used.Sub(c.Resource).Add(e.Resource)
	c.Resource, c.Version, c.Execution = e.Resource, e.Version, e.Execution
	c.changed()
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
		n.launch(c)
	}
}

func (n *Node) launch(c *Container) {
	n.do(Launch{Container: c, Launch: c.launch})
	if retryPolicy(c.launch) == nil {
		c.launch = nil // a node with a thousand containers keeps none of their contexts
	}
}

func (n *Node) exited(now time.Time, e Exited) {
	c := n.containers[e.ID]
	if c == nil || c.State == Done {
		return
	}
	if c.State == Killing {
		n.finish(now, c, c.killCode, killText(c.killCode)+e.Diagnostic)
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
	n.do(Cleanup{ID: c.ID})
}

// kill ends a container on request; code is the exit code to report.
func (n *Node) kill(now time.Time, c *Container, code int32) {
	switch c.State {
	case Done, Killing:
		return
	case Localizing, Relaunching: // no process: nothing to wait for
		n.finish(now, c, code, killText(code))
		return
	}
	c.State, c.killCode = Killing, code
	n.deadline(c, now.Add(n.cfg.KillDelay))
	c.changed()
	n.do(Kill{ID: c.ID, Signal: 15})
}

// deadline sets a container's deadline; zero takes it away.
func (n *Node) deadline(c *Container, at time.Time) {
	if !c.deadline.IsZero() {
		n.deadlines--
	}
	if !at.IsZero() {
		n.deadlines++
	}
	c.deadline = at
}

// NextDeadline is when the next Tick matters; zero when nothing waits.
func (n *Node) NextDeadline() time.Time {
	var first time.Time
	if n.deadlines == 0 {
		return first // nearly always: only the killed and the relaunched have one
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

// Containers lists the containers that are not forgotten, by arrival.
func (n *Node) Containers() []*Container {
	return slices.Clone(n.order)
}

// Status is a container's state as its AM sees it.
func (n *Node) Status(id creel.ContainerID) (*pb.ContainerStatusProto, error) {
	if c := n.containers[id]; c != nil {
		return c.statusProto(), nil
	}
	if e, ok := n.recent[id]; ok {
		return e.status, nil
	}
	return nil, refuse(creel.ErrContainerNotFound, "Container %s is not handled by this NodeManager", id)
}

// forgetOld drops expired memories of finished containers.
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
