// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"log/slog"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/app/daemon"
	"github.com/creelrm/creel/internal/settings"
	rebalance "github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	places "github.com/creelrm/creel/subcluster/resolver"
	resolver "github.com/creelrm/creel/subcluster/resolver/server"
)

// AgentConfig is all that the agent of a Hadoop ResourceManager needs besides
// its store.
type AgentConfig struct {
	Member    subcluster.Member // its Epoch is given by the store
	TakeOver  bool              // takes the name of a member that is alive
	Signer    *subcluster.Signer
	Heartbeat time.Duration
	Escrow    Escrow // of queues with a federation-wide maximum
	User      string // as whom their maxima are changed
	Log       *slog.Logger
}

// AgentSettings reads an agent's configuration, from the directory of the
// ResourceManager that it speaks for.
func AgentSettings(s *settings.Settings) (AgentConfig, error) {
	if err := mayStart(s, settings.Agent); err != nil {
		return AgentConfig{}, err
	}
	id := creel.SubclusterID(s.String("creel.subcluster.id"))
	if err := subcluster.ValidID(id); err != nil {
		return AgentConfig{}, s.Problem("creel.subcluster.id", err.Error(),
			"name the member: --subcluster ID or creel.subcluster.id")
	}
	signer, err := signerOf(s.String("creel.cluster.secret-file"))
	if err != nil {
		return AgentConfig{}, err
	}
	return AgentConfig{
		Signer:    signer,
		TakeOver:  s.Bool("creel.membership.take-over"),
		Heartbeat: s.Duration("creel.membership.beat-interval"),
		Escrow:    EscrowSettings(s),
		User:      s.String("creel.router.proxy-user"),
		Log:       slog.Default(),
		Member: subcluster.Member{
			ID:      id,
			Lease:   s.Duration("creel.membership.lease"),
			Version: subcluster.HadoopVersion,
			Addresses: subcluster.Addresses{
				Client:    s.Address("yarn.resourcemanager.address"),
				Scheduler: s.Address("yarn.resourcemanager.scheduler.address"),
				Admin:     s.Address("yarn.resourcemanager.admin.address"),
				Tracker:   s.Address("yarn.resourcemanager.resource-tracker.address"),
				Web:       s.Address("yarn.resourcemanager.webapp.address"),
			},
		},
	}, nil
}

// NewAgent assembles the agent of a Hadoop ResourceManager that does not know
// us: it watches that one's web port and keeps its membership alive.
func NewAgent(c AgentConfig, store statestore.Store) *daemon.Service {
	web := func() *remote.WebMember { return &remote.WebMember{Address: c.Member.Addresses.Web, Log: c.Log} }
	nodes := &resolver.Publisher{
		Member: c.Member.ID, Store: store, Log: c.Log,
		Every: 30 * time.Second, Linger: 20, Verify: 2, // its list of nodes costs it much
		Read: func(ctx context.Context) (places.Nodes, error) { return web().Racks(ctx) },
	}
	member := web()
	member.Nodes = nodes.Digest
	agent := &remote.Agent{
		Store:    store,
		Probe:    member.Probe,
		Every:    c.Heartbeat,
		Logger:   c.Log,
		Member:   c.Member,
		TakeOver: c.TakeOver,
		Signer:   c.Signer,
	}
	epochs := make(chan int64, 1)
	agent.Keep = func(_ context.Context, epoch int64) error { epochs <- epoch; return nil }
	s := &daemon.Service{Entries: []daemon.Entry{daemon.NewEntry("agent", map[string]string{})}}
	s.Add("membership", agent.Run)
	s.Add("published nodes", nodes.Run)
	s.Add("escrow", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case epoch := <-epochs:
			return c.keeper(epoch, store).Run(ctx)
		}
	})
	return s
}

// keeper holds the member's parts of federation-wide maxima by its ResourceManager's own
// settings.
func (c *AgentConfig) keeper(epoch int64, store statestore.Store) *rebalance.Keeper {
	return &rebalance.Keeper{
		ID: c.Member.ID, Epoch: epoch, Store: store, Every: c.Escrow.Every, Terms: c.Escrow.Terms,
		Recover: c.Escrow.Recovery, Log: c.Log,
		Settings: &remote.HadoopQueues{
			Address: c.Member.Addresses.Web, User: c.User, Linger: c.Escrow.Terms.Linger,
		},
	}
}
