// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/journal"
)

// Addresses are where the doors listen.
type Addresses struct{ Client, Scheduler, Tracker, Admin string }

// Daemon is a ResourceManager: New opens its journal and its ports, Run serves.
type Daemon struct {
	cfg     Config
	log     *slog.Logger
	start   time.Time // our identifier towards nodes, in ms
	m       *rm.Machine
	save    saving
	unsaved []func()
	out     []func()
	actions []rm.Action
	answers chan []func()
	box     mailbox
	owner   owning
	changed bool          // since changes was last counted up; owner's
	changes atomic.Uint64 // what happened to applications, nodes and queues beyond the numbers that move with every heartbeat
	reads   int           // events of this batch that changed nothing; owner's
	moves   atomic.Uint64 // see Moves
	lists   lists
	endings endings
	reports reports
	stopped chan struct{}

	access   *access
	secrets  *secrets
	tokens   *delegation
	launcher *launcher
	tracker  *tracker
	metrics  Metrics

	attempts map[creel.ApplicationID]int32 // attempts with a record in the journal; owner's
	nextApp  atomic.Int32
	web      atomic.Pointer[string]

	doors [4]door
	ready chan struct{}
}

// door is one port with its server.
type door struct {
	name     string
	server   *hrpc.Server
	listener net.Listener
}

// Metrics are counts since the start, read without asking the owner.
type Metrics struct {
	Beats, Allocates, Submissions, Launches, LaunchFailures, Kills atomic.Int64
}

// New checks a Config, opens and replays the journal and listens. It starts no
// goroutine: call Run, or Close.
func New(cfg Config) (*Daemon, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	d := &Daemon{
		cfg:     cfg,
		log:     cfg.Logger,
		start:   time.Now(),
		answers: make(chan []func(), 256),
		stopped: make(chan struct{}),
		ready:   make(chan struct{}),
		box:     mailbox{limit: cfg.Mailbox, wake: make(chan struct{}, 1)},
		access: &access{
			proxies:  cfg.Proxies,
			adminACL: cfg.AdminACL,
			acls:     cfg.ACLs,
			lookup:   cfg.Groups,
			cache:    map[string]cachedGroups{},
		},
		attempts: map[creel.ApplicationID]int32{},
	}
	d.secrets = newSecrets(d.start, cfg)
	d.tokens = newDelegation(d.start, cfg)
	d.tracker = newTracker(cfg)
	if cfg.Hosts != nil {
		// As Hadoop's: lists that cannot be read at the start are done without,
		// and a refresh that cannot read them fails.
		hosts, err := cfg.Hosts()
		if err != nil {
			d.log.Warn("the lists of hosts are not in force: every host may serve", "error", err)
			hosts = Hosts{}
		}
		d.tracker.setHosts(hosts)
	}
	d.launcher = newLauncher(d)
	if err := d.open(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// open brings back the journal, makes the machine and listens.
func (d *Daemon) open() error {
	mc := d.cfg.Machine
	mc.ClusterTimestamp = d.start.UnixMilli()
	mc.Epoch = d.cfg.Epoch
	mc.AdminACL = d.cfg.AdminACL
	mc.Volatile = d.cfg.Dir == ""
	var apps []rm.AppRecord
	var disowned []rm.Disowned
	if !mc.Volatile {
		var err error
		if d.save.journal, err = journal.Open(d.cfg.Dir, journal.Options{}); err != nil {
			return err
		}
		k, err := d.replay()
		if err != nil {
			return err
		}
		apps, disowned = k.apps, k.disowned
		if mc.Epoch += k.meta.Lives; mc.Epoch >= 1<<23 {
			return fmt.Errorf("resource manager: epoch %d does not fit into container ids", mc.Epoch)
		}
		if k.secrets != nil {
			if err := d.secrets.restore(d.cfg, k.secrets); err != nil {
				return err
			}
		}
		if err := d.tokens.restore(d.cfg, k.tokenKeys, k.tokens); err != nil {
			return err
		}
		k.meta.Lives++
		if err := d.putStart(k.meta); err != nil {
			return err
		}
	}
	var err error
	if d.m, err = rm.New(mc); err != nil {
		return err
	}
	if len(apps) > 0 || len(disowned) > 0 {
		if err := d.m.Recover(&rm.Recover{Apps: apps, Disowned: disowned}); err != nil {
			return fmt.Errorf("resource manager: recovering %d applications: %w", len(apps), err)
		}
		for _, a := range apps {
			d.remember(a)
		}
	}
	return d.listen()
}

// remember makes the tokens of a recovered application good again.
func (d *Daemon) remember(a rm.AppRecord) {
	s := a.Submission
	d.secrets.addApp(s.ID, s.User, contextOf(s.Context))
	if a.State.Ended() {
		return
	}
	for _, attempt := range a.Attempts {
		if !attempt.State.Ended() {
			d.secrets.addAttempt(attempt.ID)
		}
	}
}

// putStart records a new life before anyone can see it.
func (d *Daemon) putStart(life meta) error {
	value, err := json.Marshal(life)
	if err != nil {
		return err
	}
	d.save.tx.Put(keyMeta, value)
	return d.putSecrets()
}

// putSecrets adds the master keys to the running transaction.
func (d *Daemon) putSecrets() error {
	value, err := d.secrets.value()
	if err != nil {
		return err
	}
	d.save.tx.Put(keySecrets, value)
	return d.tokens.putKeys(&d.save.tx)
}

func (d *Daemon) listen() error {
	rpcConfig := func(services ...hrpc.Service) hrpc.Config {
		c := d.cfg.RPC
		c.Services, c.Simple, c.Tokens = services, true, nil
		c.ErrorOf = errorOf
		c.Impersonate = func(real, effective string, remote netip.Addr) error {
			return d.access.impersonate(real, effective, remote)
		}
		c.Logger = d.log
		return c
	}
	client := rpcConfig(d.clientService())
	client.Tokens = d.tokens.check
	scheduler := rpcConfig(d.masterService())
	scheduler.Simple, scheduler.Tokens = false, d.secrets.checkAMRM
	for i, p := range []struct {
		name, address string
		cfg           hrpc.Config
	}{
		{"client", d.cfg.Client, client},
		{"scheduler", d.cfg.Scheduler, scheduler},
		{"tracker", d.cfg.Tracker, rpcConfig(d.trackerService())},
		{"admin", d.cfg.Admin, rpcConfig(d.adminService(), d.haService())},
	} {
		server, err := hrpc.NewServer(p.cfg)
		if err != nil {
			return fmt.Errorf("resource manager: %s door: %w", p.name, err)
		}
		l, err := net.Listen("tcp", p.address)
		if err != nil {
			return fmt.Errorf("resource manager: %s door: %w", p.name, err)
		}
		d.doors[i] = door{name: p.name, server: server, listener: l}
	}
	return nil
}

// Addresses are where the doors listen; known from New on.
func (d *Daemon) Addresses() Addresses {
	at := func(i int) string { return d.doors[i].listener.Addr().String() }
	return Addresses{Client: at(0), Scheduler: at(1), Tracker: at(2), Admin: at(3)}
}

// SetWeb tells at which host:port the REST door and the web proxy listen, for
// the links in reports.
func (d *Daemon) SetWeb(address string) { d.web.Store(&address) }

func (d *Daemon) webAddress() string {
	if p := d.web.Load(); p != nil {
		return *p
	}
	return "127.0.0.1:8088"
}

// Started is when this life began; its milliseconds are the identifier towards
// nodes and the timestamp in new application ids.
func (d *Daemon) Started() time.Time { return d.start }

// ClusterID is the configured name of the cluster.
func (d *Daemon) ClusterID() string { return d.cfg.ClusterID }

// Metrics are counts since the start.
func (d *Daemon) Metrics() *Metrics { return &d.metrics }

// Ready is closed when the doors serve.
func (d *Daemon) Ready() <-chan struct{} { return d.ready }

// Close releases what New took, for a Daemon on which Run was not called.
func (d *Daemon) Close() error {
	var errs []error
	for _, p := range d.doors {
		if p.listener != nil {
			errs = append(errs, p.listener.Close())
		}
	}
	if d.save.journal != nil {
		errs = append(errs, d.save.journal.Close())
	}
	return errors.Join(errs...)
}

// Run serves until the context ends, drains, and returns nil; or it returns the
// first failure. Who starts what: doors, launcher and clockwork end first, then
// the owner, whose last answers the responders send, and the journal at last.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := func(err error) {
		if err != nil {
			stop(err)
		}
	}

	journalCtx, stopJournal := context.WithCancel(context.WithoutCancel(ctx))
	defer stopJournal()
	var last sync.WaitGroup
	if d.save.journal != nil {
		last.Go(func() { ended(d.save.journal.Run(journalCtx)) })
		if err := settleFirst(func(done func(error)) { d.save.journal.Commit(&d.save.tx, done) }); err != nil {
			stopJournal()
			last.Wait()
			return err
		}
		d.save.tx.Reset()
	}

	ownerCtx, stopOwner := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOwner()
	var middle, responders sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		responders.Go(d.responder)
	}
	middle.Go(func() { ended(d.own(ownerCtx)) })

	var first sync.WaitGroup
	for _, p := range d.doors {
		first.Go(func() {
			err := p.server.Run(ctx, p.listener)
			if err != nil {
				err = fmt.Errorf("resource manager: %s door: %w", p.name, err)
			}
			ended(err)
		})
	}
	first.Go(func() { d.launcher.run(ctx) })
	first.Go(func() { d.clockwork(ctx) })
	close(d.ready)
	d.log.Info("resource manager serves", "addresses", d.Addresses(), "identifier", d.start.UnixMilli())

	<-ctx.Done()
	first.Wait()
	stopOwner()
	middle.Wait()
	close(d.answers)
	responders.Wait()
	stopJournal()
	last.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// clockwork does what is due by the clock and not by an event: master keys, and
// the pace of heartbeats.
func (d *Daemon) clockwork(ctx context.Context) {
	every := min(d.cfg.KeyRoll/20+time.Millisecond, time.Second)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = d.box.post(func(m *rm.Machine, now time.Time) func() {
				d.rollKeys(m, now)
				nodes := m.Cluster().Nodes
				d.tracker.pace(
					d.cfg,
					nodes[creel.NodeRunning]+nodes[creel.NodeUnhealthy]+nodes[creel.NodeDecommissioning],
				)
				return nil
			})
		case <-ctx.Done():
			return
		}
	}
}

// rollKeys lets time pass for keys and tokens, and keeps what changed.
func (d *Daemon) rollKeys(m *rm.Machine, now time.Time) {
	changed, nmActive := d.secrets.step(now)
	if nmActive {
		m.ForgetNMTokens(now)
	}
	if d.tokens.step(now, &d.save.tx) || changed {
		if err := d.putSecrets(); err != nil {
			d.fail(err)
		}
	}
}

// errorOf turns errors into the exceptions that YARN has for them.
func errorOf(err error) *hrpc.Error {
	class := ""
	switch {
	case errors.Is(err, errNoApplicationID):
		class = yarnrpc.ClassApplicationIDNotProvided
	case errors.Is(err, rm.ErrOutOfStep), errors.Is(err, rm.ErrAlreadyRegistered):
		class = yarnrpc.ClassInvalidMasterRequest
	case errors.Is(err, rm.ErrInvalidRelease):
		class = yarnrpc.ClassInvalidRelease
	case errors.Is(err, rm.ErrInvalidBlacklist):
		class = yarnrpc.ClassInvalidBlacklist
	case errors.Is(err, rm.ErrInvalidLabel):
		class = yarnrpc.ClassInvalidLabel
	}
	if class != "" {
		err = yarnrpc.Throw(class, err)
	}
	return yarnrpc.ErrorOf(err)
}
