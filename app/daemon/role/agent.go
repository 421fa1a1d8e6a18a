// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
	"github.com/creelrm/creel/subcluster/member"
	"github.com/creelrm/creel/subcluster/remote"
	places "github.com/creelrm/creel/subcluster/resolver"
	resolver "github.com/creelrm/creel/subcluster/resolver/server"
)

// AgentConfig is the configuration of a Hadoop ResourceManager's agent, apart from its store.
type AgentConfig struct {
	Member    subcluster.Member // the store issues its Epoch
	TakeOver  bool              // take over the name of a live member
	Signer    *subcluster.Signer
	Secrets   []string // files that others should not read
	Heartbeat time.Duration
	Escrow    Escrow      // of queues with a federation-wide maximum
	Login     login.Login // at the ResourceManager; its user changes their maxima
	DialTLS   remote.DialTLS
	Epoch     int64 // the ResourceManager's yarn.resourcemanager.epoch
	Log       *slog.Logger
}

// AgentSettings reads an agent's configuration from its ResourceManager's directory.
func AgentSettings(s *settings.Settings) (AgentConfig, error) {
	if err := mayStart(s, settings.Agent); err != nil {
		return AgentConfig{}, err
	}
	id := creel.SubclusterID(s.String("creel.subcluster.id"))
	if err := subcluster.ValidID(id); err != nil {
		return AgentConfig{}, s.Problem("creel.subcluster.id", err.Error(),
			"name the member: --subcluster ID or creel.subcluster.id")
	}
	if err := leaseOutlasts(s); err != nil {
		return AgentConfig{}, err
	}
	addresses, err := addressesOf(s)
	if err != nil {
		return AgentConfig{}, err
	}
	signer, err := signerOf(s.String(clusterSecretFile))
	if err != nil {
		return AgentConfig{}, err
	}
	as, err := agentLogin(s)
	if err != nil {
		return AgentConfig{}, err
	}
	dial, err := dialTLS(s)
	if err != nil {
		return AgentConfig{}, err
	}
	return AgentConfig{
		Signer:    signer,
		Secrets:   secretFiles(s),
		TakeOver:  s.Bool("creel.membership.take-over"),
		Heartbeat: s.Duration("creel.membership.heartbeat-interval"),
		Escrow:    EscrowSettings(s),
		Login:     as.Login,
		DialTLS:   dial,
		Epoch:     s.Long("yarn.resourcemanager.epoch"),
		Log:       slog.Default(),
		Member: subcluster.Member{
			ID:        id,
			Lease:     s.Duration("creel.membership.lease"),
			Version:   subcluster.HadoopVersion,
			Addresses: addresses,
		},
	}, nil
}

// addressesOf reads the addresses of a Hadoop ResourceManager, or of both of an HA pair, from Hadoop's configuration
// files.
func addressesOf(s *settings.Settings) (a subcluster.Addresses, err error) {
	ports := []struct {
		key string
		to  *string
	}{
		{"yarn.resourcemanager.address", &a.Client},
		{"yarn.resourcemanager.scheduler.address", &a.Scheduler},
		{"yarn.resourcemanager.admin.address", &a.Admin},
		{"yarn.resourcemanager.resource-tracker.address", &a.Tracker},
		{rmWeb(s), &a.Web},
	}
	a.HTTPS = httpsOnly(s)
	if !s.Bool("yarn.resourcemanager.ha.enabled") {
		for _, p := range ports {
			*p.to = s.Address(p.key)
		}
		return a, nil
	}
	ids := s.List("yarn.resourcemanager.ha.rm-ids")
	if len(ids) < 2 {
		return a, s.Problem("yarn.resourcemanager.ha.rm-ids",
			fmt.Sprintf("with yarn.resourcemanager.ha.enabled it names the ResourceManagers of a pair, here %d", len(ids)),
			"name them, such as rm1,rm2, or set yarn.resourcemanager.ha.enabled to false")
	}
	if i := slices.IndexFunc(ids, func(id string) bool { return strings.Contains(id, ".") }); i >= 0 {
		return a, s.Problem("yarn.resourcemanager.ha.rm-ids", ids[i]+" has a dot, and ids are parts of settings' names",
			"name them without dots, such as rm1,rm2")
	}
	for _, p := range ports {
		hosts := make([]string, len(ids))
		for i, id := range ids {
			if hosts[i] = s.AddressOf(p.key, id); hosts[i] == "" {
				return a, s.Problem(p.key+"."+id, "it is not set, nor is yarn.resourcemanager.hostname."+id,
					"set yarn.resourcemanager.hostname."+id+" to the host of "+id)
			}
		}
		*p.to = strings.Join(hosts, ",")
	}
	return a, nil
}

// NewAgent assembles the agent of a Hadoop ResourceManager, which is unaware of it: the agent polls its web port and
// keeps its membership alive.
func NewAgent(c AgentConfig, store statestore.Store) *daemon.Service {
	port := remote.NewWebPort(c.Member.Addresses, c.Login, c.DialTLS)
	web := func() *remote.WebMember { return &remote.WebMember{Web: port, Log: c.Log} }
	nodes := &resolver.Publisher{
		Member: c.Member.ID, Store: store, Log: c.Log,
		Every: 30 * time.Second, Linger: 20, Verify: 2, // its list of nodes is expensive
		Read: func(ctx context.Context) (places.Nodes, error) { return web().Racks(ctx) },
	}
	budgets := &member.Follower{
		ID: c.Member.ID, Store: store, Every: hadoopBudgetPoll, Log: c.Log,
		Settings:   &remote.HadoopPreemption{Web: port, User: c.Login.User},
		Capacities: &remote.HadoopConf{Web: port, User: c.Login.User},
	}
	member := web()
	member.Nodes, member.Preempted, member.Configured = nodes.Digest, budgets.Spent, budgets.Configured
	agent := &remote.Agent{
		Store:    store,
		Probe:    member.Probe,
		Version:  member.Version,
		Every:    c.Heartbeat,
		Logger:   c.Log,
		Member:   c.Member,
		TakeOver: c.TakeOver,
		Signer:   c.Signer,
	}
	epochs, speaks := make(chan int64, 1), make(chan struct{})
	agent.Keep = func(_ context.Context, epoch int64) error {
		epochs <- epoch
		close(speaks)
		return nil
	}
	s := &daemon.Service{Entries: []daemon.Entry{daemon.NewEntry("agent", map[string]string{})}}
	watchSecrets(s, c.Secrets, nil, c.Log)
	awaitAccepted(s, agent, store, "agent", c.Log)
	s.Add("membership", agent.Run)
	s.Add("published nodes", nodes.Run)
	s.Add("first epoch", func(ctx context.Context) error {
		return keepEpoch(ctx, store, c.Member.ID, c.Epoch, c.Log)
	})
	s.Add("escrow", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case epoch := <-epochs:
			return c.keeper(epoch, store, port).Run(ctx)
		}
	})
	s.Add("preemption budgets", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-speaks:
			return budgets.Run(ctx)
		}
	})
	return s
}

// hadoopBudgetPoll is the pause between counts of preempted resources while a queue has a preemption budget. It is
// shorter than the interval of preemption rounds, three seconds by default.
const hadoopBudgetPoll = time.Second

// keeper enforces the member's parts of federation-wide maxima by its ResourceManager's settings.
func (c *AgentConfig) keeper(epoch int64, store statestore.Store, web *remote.WebPort) *member.Keeper {
	return &member.Keeper{
		ID: c.Member.ID, Epoch: epoch, Store: store, Every: c.Escrow.Every, Terms: c.Escrow.Terms,
		Recover: c.Escrow.Recovery, Log: c.Log,
		Settings: &remote.HadoopQueues{Web: web, User: c.Login.User, Linger: c.Escrow.Terms.Linger},
	}
}
