// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

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

	// RPC are the limits of each protocol. Services, Simple, Tokens and similar fields are set here. With Kerberos no
	// port accepts SIMPLE; Protections apply to the ports that accept tokens.
	RPC hrpc.Config

	// Node rejects clients of the tracker that are no NodeManagers. Nil accepts all.
	Node func(who *hrpc.Identity, remote netip.Addr) error
}

// Ports are the four protocols of a ResourceManager with their listeners.
type Ports struct{ ports [4]port }

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
		c := cfg.RPC
		c.Services, c.Simple, c.Tokens, c.Protections = services, c.Kerberos == nil, nil, nil
		c.ErrorOf = errorOf
		c.Impersonate = s.Impersonate
		c.Logger = s.Logger()
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
	p := &Ports{}
	for i, c := range []struct {
		name, address string
		cfg           hrpc.Config
	}{
		{"client", cfg.Client, client},
		{"scheduler", cfg.Scheduler, scheduler},
		{"tracker", cfg.Tracker, tracker},
		{"admin", cfg.Admin, base(adminService(s), haService(s))},
	} {
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
		p.ports[i] = port{name: c.name, server: rpc, listener: l}
	}
	at := func(i int) string { return p.ports[i].listener.Addr().String() }
	s.SetAddresses(server.Addresses{Client: at(0), Scheduler: at(1), Tracker: at(2), Admin: at(3)})
	return p, nil
}

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
		if port.listener != nil {
			errs = append(errs, port.listener.Close())
		}
	}
	return errors.Join(errs...)
}
