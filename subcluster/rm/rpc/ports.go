// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
	"golang.org/x/sync/errgroup"
)

// Config has the host:port of the four protocols; a port may be 0.
type Config struct {
	Client    string // yarn.resourcemanager.address
	Scheduler string // yarn.resourcemanager.scheduler.address
	Tracker   string // yarn.resourcemanager.resource-tracker.address
	Admin     string // yarn.resourcemanager.admin.address

	// Distributed serves NodeManagers that place opportunistic containers themselves, on the scheduler port:
	// yarn.nodemanager.distributed-scheduling.enabled.
	Distributed bool

	// Pair is the server's pair, or nil. Its admin port is that of ListenAdmin.
	Pair *server.Pair

	// RPC are the limits of each protocol. Services, Simple, Tokens and similar fields are set here. With Kerberos no
	// port accepts SIMPLE; Protections apply to the ports that accept tokens.
	RPC hrpc.Config

	// Node rejects clients of the tracker that are no NodeManagers. Nil accepts all.
	Node func(who *hrpc.Identity, remote netip.Addr) error
}

// Ports are the four protocols of a ResourceManager with their listeners. The active one of a pair has three: the
// admin port stays open at the standby, see ListenAdmin.
type Ports struct{ ports []port }

// port is one protocol with its listener.
type port struct {
	name     string
	server   *hrpc.Server
	listener net.Listener
}

// Listen binds the ports and reports their addresses to the server. The caller runs them within the server's Run, or
// calls Close.
func Listen(s *server.Server, cfg Config) (*Ports, error) {
	base := func(services ...hrpc.Service) hrpc.Config {
		c := plainPort(cfg, s.Logger(), services...)
		c.Impersonate = s.Impersonate
		if p := cfg.Pair; p != nil {
			c.Interceptors = append(slices.Clone(c.Interceptors), refuseAtStandby(p))
		}
		return c
	}
	client := base(clientService(s))
	client.Tokens, client.Protections = s.CheckDelegation, cfg.RPC.Protections
	scheduler := base(amService(s))
	if cfg.Distributed {
		scheduler = base(amService(s), distributedService(s))
	}
	scheduler.Simple, scheduler.Kerberos = false, nil
	scheduler.Tokens, scheduler.Protections = s.CheckAMRM, cfg.RPC.Protections
	tracker := base(nodeService(s))
	tracker.Authorize = both(cfg.Node, tracker.Authorize)
	wanted := []protocol{
		{"client", cfg.Client, client},
		{"scheduler", cfg.Scheduler, scheduler},
		{"tracker", cfg.Tracker, tracker},
	}
	if cfg.Pair == nil {
		wanted = append(wanted, protocol{"admin", cfg.Admin, base(adminService(s), haService(s))})
	}
	p, err := bind(wanted...)
	if err != nil {
		return nil, err
	}
	a := server.Addresses{Client: p.at(0), Scheduler: p.at(1), Tracker: p.at(2)}
	if len(p.ports) > 3 {
		a.Admin = p.at(3)
	}
	s.SetAddresses(a)
	return p, nil
}

// plainPort is the configuration of a port whose clients have no tokens.
func plainPort(cfg Config, log *slog.Logger, services ...hrpc.Service) hrpc.Config {
	c := cfg.RPC
	c.Services, c.Simple, c.Tokens, c.Protections = services, c.Kerberos == nil, nil, nil
	c.ErrorOf = errorOf
	c.Logger = log
	return c
}

// protocol is a port that is not bound yet.
type protocol struct {
	name, address string
	cfg           hrpc.Config
}

// bind binds ports, or none of them.
func bind(wanted ...protocol) (*Ports, error) {
	p := &Ports{}
	for _, c := range wanted {
		if c.address == "" {
			return nil, errors.Join(
				fmt.Errorf("resource manager: the %s address is not set; use 127.0.0.1:0 for any port", c.name),
				p.Close(),
			)
		}
		rpc, err := hrpc.NewServer(c.cfg)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("resource manager: %s protocol: %w", c.name, err), p.Close())
		}
		l, err := net.Listen("tcp", c.address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("resource manager: %s protocol: %w", c.name, err), p.Close())
		}
		p.ports = append(p.ports, port{name: c.name, server: rpc, listener: l})
	}
	return p, nil
}

// at returns the address of a port.
func (p *Ports) at(i int) string { return p.ports[i].listener.Addr().String() }

// authorizer is hrpc.Config's Authorize.
type authorizer = func(who *hrpc.Identity, protocol string, remote netip.Addr) error

// both returns a function that accepts the clients that both functions accept. A nil function accepts all.
func both(node func(*hrpc.Identity, netip.Addr) error, acl authorizer) authorizer {
	if node == nil {
		return acl
	}
	return func(who *hrpc.Identity, protocol string, remote netip.Addr) error {
		err := node(who, remote)
		if err == nil && acl != nil {
			err = acl(who, protocol, remote)
		}
		return err
	}
}

// Open makes a server and binds its ports. The caller runs ports.Run within the server's Run, or closes both.
func Open(c server.Config, cfg Config) (*server.Server, *Ports, error) {
	s, err := server.New(c)
	if err != nil {
		return nil, nil, err
	}
	p, err := Listen(s, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, p, nil
}

// Each calls f with the address and the server of each port.
func (p *Ports) Each(f func(address string, s *hrpc.Server)) {
	for _, port := range p.ports {
		f(port.listener.Addr().String(), port.server)
	}
}

// Run serves until the context ends, or returns the first failure.
func (p *Ports) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, port := range p.ports {
		g.Go(func() error {
			if err := port.server.Run(ctx, port.listener); err != nil {
				return fmt.Errorf("resource manager: %s protocol: %w", port.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// Close unbinds the ports, for Ports on which Run was not called.
func (p *Ports) Close() error {
	var errs []error
	for _, port := range p.ports {
		errs = append(errs, port.listener.Close())
	}
	return errors.Join(errs...)
}
