// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/build"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/member"
	"github.com/creelrm/creel/subcluster/remote"
	places "github.com/creelrm/creel/subcluster/resolver"
	resolver "github.com/creelrm/creel/subcluster/resolver/server"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// Membership is a ResourceManager's membership in a federation.
type Membership struct {
	ID        creel.SubclusterID
	Store     statestore.Store
	Secret    func(context.Context) ([]statestore.Key, error) // seals its token keys in the store
	Lease     time.Duration
	Heartbeat time.Duration
	Proxy     string // published address of this member's AM-RM proxy
	Escrow    Escrow // of queues with a federation-wide maximum
	Host      string // published for ports that listen on every interface
	// Named: tickets are for names, so all ports are published with one, the web port with WebHost. HTTPS: the web port
	// uses TLS, and certificates are for names too.
	Named, HTTPS bool
	WebHost      string
	// Announce changes the published addresses; nil: unchanged. Tests insert a network that they can cut.
	Announce func(subcluster.Addresses) subcluster.Addresses
	// TakeOver takes over the name of a live member.
	TakeOver bool
	Signer   *subcluster.Signer // of its record and heartbeats; nil: unsigned
	// AcceptEmpty lets a ResourceManager with an empty journal serve although the store lists its applications.
	AcceptEmpty bool
	// Distributed publishes the keys with which proxies place opportunistic containers.
	Distributed bool
}

func membershipSettings(
	s *settings.Settings,
	id creel.SubclusterID,
	store statestore.Store,
) (*Membership, error) {
	if err := subcluster.ValidID(id); err != nil {
		return nil, s.Problem("creel.subcluster.id", err.Error(),
			"a member needs a name: --subcluster ID or creel.subcluster.id")
	}
	if err := leaseOutlasts(s); err != nil {
		return nil, err
	}
	secret, err := clusterSecret(store, s.String(clusterSecretFile))
	if err != nil {
		return nil, err
	}
	host, err := hostOf(addressAt(s, "yarn.resourcemanager.address"))
	if err != nil {
		return nil, err
	}
	webHost, err := hostOf(cmp.Or(addressAt(s, rmWeb(s)), addressAt(s, "yarn.resourcemanager.address")))
	if err != nil {
		return nil, err
	}
	signer, err := signerOf(s.String(clusterSecretFile))
	if err != nil {
		return nil, err
	}
	return &Membership{
		Signer:   signer,
		TakeOver: s.Bool("creel.membership.take-over"),

		AcceptEmpty: s.Bool("creel.membership.accept-empty"),

		Distributed: s.Bool(distributedScheduling),

		ID:        id,
		Store:     store,
		Secret:    secret,
		Lease:     s.Duration("creel.membership.lease"),
		Heartbeat: s.Duration("creel.membership.heartbeat-interval"),
		Proxy:     s.Address("yarn.nodemanager.amrmproxy.address"),
		Host:      host,
		Named:     secure(s),
		WebHost:   webHost,
		HTTPS:     httpsOnly(s),
		Escrow:    EscrowSettings(s),
	}, nil
}

// leaseOutlasts rejects a lease that expires before the member's next heartbeat.
func leaseOutlasts(s *settings.Settings) error {
	lease, each := s.Duration("creel.membership.lease"), s.Duration("creel.membership.heartbeat-interval")
	if lease > each {
		return nil
	}
	return s.Problem("creel.membership.lease",
		fmt.Sprintf("the member would be lost before each heartbeat: creel.membership.heartbeat-interval is %v", each),
		"make it several times as long")
}

// Escrow configures the enforcement of a ResourceManager's parts of federation-wide maxima.
type Escrow struct {
	Terms    escrow.Terms
	Every    time.Duration
	Recovery time.Duration
}

// EscrowSettings reads an Escrow.
func EscrowSettings(s *settings.Settings) Escrow {
	return Escrow{
		Terms: escrow.Terms{
			Lease:  s.Duration("creel.escrow.lease"),
			Linger: s.Duration("creel.escrow.linger"),
			Margin: s.Duration("creel.escrow.lease") / 30,
		},
		Every:    s.Duration("creel.escrow.interval"),
		Recovery: s.Duration("creel.escrow.recovery"),
	}
}

// NewMembership returns a membership in a federation on loopback, with the secret in the store. The caller sets Lease
// and Heartbeat.
func NewMembership(id creel.SubclusterID, store statestore.Store) (*Membership, error) {
	secret, err := clusterSecret(store, "")
	terms := Escrow{Terms: escrow.DefaultTerms(), Every: 500 * time.Millisecond, Recovery: time.Minute}
	return &Membership{ID: id, Store: store, Secret: secret, Escrow: terms}, err
}

// reachable returns the address of a port for other machines: the bound one, or with the member's host if that is
// every interface.
func (m *Membership) reachable(bound string) string {
	host, port, err := net.SplitHostPort(bound)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() || m.Host == "" {
		return bound
	}
	return net.JoinHostPort(m.Host, port)
}

// published returns the addresses in the member's record.
func (m *Membership) published(bound subcluster.Addresses) subcluster.Addresses {
	bound.Proxy, bound.HTTPS = m.Proxy, m.HTTPS
	rpc := []*string{&bound.Client, &bound.Scheduler, &bound.Admin, &bound.Tracker}
	for _, a := range append(rpc, &bound.Web, &bound.Proxy) {
		*a = m.reachable(*a)
	}
	if m.Named {
		for _, a := range rpc {
			*a = named(m.Host, *a)
		}
	}
	if m.Named || m.HTTPS {
		bound.Web = named(m.WebHost, bound.Web)
	}
	if m.Announce != nil {
		bound = m.Announce(bound)
	}
	return bound
}

// named returns an address with another host.
func named(host, address string) string {
	if _, port, err := net.SplitHostPort(address); err == nil {
		return net.JoinHostPort(host, port)
	}
	return address
}

// hostOf returns the host of a configured address, or this machine's name if the address is every interface.
func hostOf(configured string) (string, error) {
	host, _, err := net.SplitHostPort(configured)
	if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host, nil
	}
	return os.Hostname()
}

// witnessPoll is the pause between a ResourceManager's reads of the list of members and of its drain, in addition to
// the store's notifications. The end of a drain is accepted only after a longer time.
const witnessPoll = 10 * time.Second

// budgetPoll is the pause between reads of the remaining preemption budgets of queues: shorter than between plans.
const budgetPoll = 2 * time.Second

// join adds to a ResourceManager the tasks that keep it a member.
func (m *Membership) join(r *RM, bound subcluster.Addresses, alone *aloneCheck, log *slog.Logger) {
	bound = m.published(bound)
	nodes := &resolver.Publisher{
		Member: m.ID, Store: m.Store, Log: log,
		Read: func(ctx context.Context) (places.Nodes, error) {
			out := places.Nodes{}
			err := r.Server.Query(ctx, func(m *rm.Machine, _ time.Time) { maps.Insert(out, m.Racks) })
			return out, err
		},
	}
	r.Add("published nodes", nodes.Run)
	load := &probe{server: r.Server, nodes: nodes.Digest}
	agent := &remote.Agent{
		Store:    m.Store,
		Probe:    load.tell,
		Changed:  load.changed,
		Every:    m.Heartbeat,
		Logger:   log,
		Previous: r.Server.MemberEpoch(),
		Keep:     r.Server.KeepMemberEpoch,
		TakeOver: m.TakeOver,
		Signer:   m.Signer,
		Member: subcluster.Member{
			ID:        m.ID,
			Lease:     m.Lease,
			Version:   "creel " + build.Read().Version,
			Addresses: bound,
		},
	}
	others := watch.New(members(&r.Service, m.Store, m.Signer, log), watch.Config{
		Poll: witnessPoll, Queues: func() []string { return nil },
	})
	r.Add("other members", others.Run)
	addWitness(&r.Service, m.Store, others.View)
	r.Server.SetDrained(func() string {
		if view := others.View(); view != nil {
			if self, ok := view.Member(m.ID); ok {
				return self.Draining
			}
		}
		return ""
	})
	if first := r.Server.FirstEpoch(); first != 0 {
		r.Add("first epoch", func(ctx context.Context) error { return keepEpoch(ctx, m.Store, m.ID, first, log) })
	}
	awaitAccepted(&r.Service, agent, m.Store, "rm", log)
	r.Add("membership", func(ctx context.Context) error {
		if err := alone.again(ctx); err != nil {
			recordRefusal(ctx, m.Store, "rm", agent.Member, err, log)
			return err
		}
		return stay(ctx, agent, log)
	})
	keeper := &member.Keeper{
		ID:      m.ID,
		Epoch:   r.Server.Started().UnixMilli(),
		Store:   m.Store,
		Turn:    r.Server.Turn,
		Every:   m.Escrow.Every,
		Terms:   m.Escrow.Terms,
		Recover: m.Escrow.Recovery,
		Log:     log,
	}
	c := &keeper.Counts
	r.Health.Counter("creel_escrow_writes_total", "Escrow records written.", c.Writes.Load)
	r.Health.Counter("creel_escrow_conflicts_total", "Escrow records that another wrote first.", c.Conflicts.Load)
	r.Health.Counter("creel_escrow_failures_total", "Rounds in which escrow was not renewed.", c.Failed.Load)
	mb := func(v *atomic.Int64) func() float64 { return func() float64 { return float64(v.Load()) * (1 << 20) } }
	r.Health.Gauge("creel_escrow_held_bytes", "Memory held of federation-wide maxima.", mb(&c.HeldMB))
	r.Health.Gauge("creel_escrow_asked_bytes", "Memory asked for beyond that.", mb(&c.ShortMB))
	r.Health.Gauge("creel_escrow_users", "Users who may use more, or less, than every user of their queue: they have an "+
		"escrow record of their own.", func() float64 { return float64(c.HotUsers.Load()) })
	r.Add("escrow", keeper.Run)
	follower := &member.Follower{ID: m.ID, Store: m.Store, Turn: r.Server.Turn, Every: budgetPoll, Log: log}
	r.Health.Gauge("creel_preemption_budget_bytes",
		"Memory that may be taken back for queues with a preemption budget, in one interval.", mb(&follower.Counts.ShareMB))
	r.Health.Counter("creel_preemption_budget_failures_total", "Looks at preemption budgets that failed.",
		follower.Counts.Failed.Load)
	r.Health.Gauge("creel_planned_queues", "Queues whose capacity is what the federation's plan gives them here, not "+
		"what is configured.", func() float64 { return float64(follower.Counts.Planned.Load()) })
	r.Add("the federation's plan", follower.Run)
	r.Add("token keys", func(ctx context.Context) error { return m.publishKeys(ctx, r.Server, log) })
}

// awaitAccepted delays the start of a service until the store accepts the registration of its member, or does not
// answer. A ResourceManager serves its nodes and AMs without the store.
func awaitAccepted(
	s *daemon.Service, agent *remote.Agent, store statestore.Events, role string, log *slog.Logger,
) {
	accepted := make(chan struct{})
	s.Awaits = append(s.Awaits, accepted)
	accept := sync.OnceFunc(func() { close(accepted) })
	var refused sync.Once
	agent.Told = func(err error) {
		if !errors.Is(err, creel.ErrConflict) {
			accept()
			return
		}
		refused.Do(func() { recordRefusal(context.Background(), store, role, agent.Member, err, log) })
	}
}

// recordRefusal records that this process may not act for a member. A process that is started again and again records
// it once a minute.
func recordRefusal(
	ctx context.Context, store statestore.Events, role string, m subcluster.Member, why error, log *slog.Logger,
) {
	ctx, cancel := context.WithTimeout(ctx, refusalTime)
	defer cancel()
	err := store.AppendEvent(ctx, statestore.Event{
		Kind: statestore.EventMember, Subject: string(m.ID), After: "refused",
		By:     strings.TrimSpace(role + " " + m.Addresses.Web),
		Detail: why.Error(), Result: statestore.EventFailed,
		Key: fmt.Sprintf("member %s refused %d", m.ID, time.Now().Unix()/60),
	})
	if err != nil {
		log.Warn("failed to record an event", "kind", string(statestore.EventMember), "error", err)
	}
}

// refusalTime bounds the record of a refusal: the process waits for it.
const refusalTime = 2 * time.Second

// stay keeps the membership of a ResourceManager alive. If another process took its name, it continues to serve its
// AMs, because exiting would end their work.
func stay(ctx context.Context, agent *remote.Agent, log *slog.Logger) error {
	err := agent.Run(ctx)
	if errors.Is(err, creel.ErrStale) {
		log.Error("this ResourceManager is not a member any more: its applications continue, routers send no new ones",
			"subcluster", agent.Member.ID, "error", err)
		<-ctx.Done()
		return nil
	}
	return err
}

// nodeKeys returns the keys with which proxies place containers here, zero without distributed scheduling.
func (m *Membership) nodeKeys(d *server.Server) (k keys.NodeKeys) {
	if m.Distributed {
		of := server.Distributed{Server: d}
		k.NM, k.Container = of.SigningKeys()
		k.RMIdentifier, k.Epoch = of.Start()
	}
	return k
}

// publishKeys publishes this ResourceManager's token keys, with which the federation's proxies verify its AMs, and
// place containers with distributed scheduling.
func (m *Membership) publishKeys(ctx context.Context, d *server.Server, log *slog.Logger) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	logged := ""
	for {
		secret, err := m.Secret(ctx)
		if err == nil {
			err = keys.Publish(ctx, m.Store, m.ID, d.AMRMKeys(), secret)
		}
		if err == nil {
			err = keys.PublishNodeKeys(ctx, m.Store, m.ID, m.nodeKeys(d), secret)
		}
		now := ""
		if err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		switch {
		case now == logged:
		case now == "":
			log.Info("token keys published again", "subcluster", m.ID)
		default:
			log.Warn("failed to publish token keys: proxies reject AMs with new keys",
				"subcluster", m.ID, "error", now)
		}
		logged = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// probe reads the state of a ResourceManager in this process, for one agent.
type probe struct {
	server *server.Server
	nodes  func() string
	loads  codec.Loads
}

func (p *probe) tell(ctx context.Context) ([]byte, error) {
	var load subcluster.Load
	err := p.server.Query(ctx, func(m *rm.Machine, now time.Time) {
		load = p.loads.Next(m, now)
	})
	if err != nil {
		return nil, fmt.Errorf("its state cannot be read: %w", err)
	}
	load.Refusing, load.Nodes = p.server.Refusing(), p.nodes()
	return load.JSON()
}

// changed reports whether the cluster's demand differs much from the last published one.
func (p *probe) changed(ctx context.Context) bool {
	limit, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	far := false // read only after an answer: the machine may write it after the timeout
	err := p.server.Query(limit, func(m *rm.Machine, _ time.Time) { far = p.loads.Changed(m) })
	return err == nil && far
}
