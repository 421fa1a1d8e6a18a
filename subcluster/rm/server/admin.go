// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// Administer carries out an administrator's order. The caller must be an administrator; the audit line is written in
// any case.
func (s *Server) Administer(who Caller, name string, order func() error) (err error) {
	return (&Gate{s.access, s.log}).Administer(who, name, order)
}

// Gate checks administrators where no Server runs: at the standby of a pair.
type Gate struct {
	access *access
	log    *slog.Logger
}

// NewGate makes a gate with the rules of a server's configuration.
func NewGate(cfg Config) *Gate {
	cfg = cfg.withDefaults()
	return &Gate{newAccess(cfg), cfg.Logger}
}

// Administer is Server.Administer.
func (g *Gate) Administer(who Caller, name string, order func() error) (err error) {
	defer func() { audited(g.log, who, name, "AdminService", err) }()
	g.access.learn(who.User)
	if !g.access.isAdmin(who.User) {
		return denied("User %s doesn't have permission to call '%s'", who.User, name)
	}
	return order()
}

// Impersonate is Server.Impersonate.
func (g *Gate) Impersonate(real, effective string, remote netip.Addr) error {
	return g.access.impersonate(real, effective, remote)
}

// RefreshQueues reads the queues and the placement rules again and puts them in force. It is rejected if calls may
// change the queues, because it would undo their changes.
func (s *Server) RefreshQueues(ctx context.Context) error {
	if s.cfg.Mutable != nil {
		return mutableRefresh()
	}
	if s.cfg.ReloadQueues == nil {
		return nil
	}
	q, err := s.cfg.ReloadQueues()
	if err != nil {
		return codec.Invalid("the queues could not be read: %v", err)
	}
	return s.setQueues(ctx, q)
}

// RefreshNodes reads the host lists again. Nodes that are no longer admitted are decommissioned, draining ones that
// are admitted serve again, and nodes on no list are forgotten some time after they went. The timeout is for hosts
// without one in the exclude file: nil means the configured one, 0 at once, a negative one no limit.
func (s *Server) RefreshNodes(ctx context.Context, graceful bool, timeout *time.Duration) error {
	if s.cfg.Hosts == nil {
		return nil
	}
	hosts, err := s.cfg.Hosts()
	if err != nil {
		return codec.Invalid("the lists of hosts could not be read: %v", err)
	}
	s.nodes.setHosts(hosts)
	return s.order(ctx, func(m *rm.Machine, now time.Time) error {
		var in, out []creel.NodeID
		for n := range m.Nodes {
			if err := m.SetTracked(now, n.ID, s.nodes.tracked(n.ID.Host)); err != nil {
				return err
			}
			if s.nodes.wanted(n.ID.Host) {
				in = append(in, n.ID)
			} else {
				out = append(out, n.ID)
			}
		}
		for _, id := range out {
			d := &rm.Decommission{ID: id, Graceful: graceful, Timeout: hosts.Timeout}
			if timeout != nil {
				d.Timeout, d.Graceful = *timeout, graceful && *timeout != 0
			}
			if t, ok := hosts.Timeouts[id.Host]; ok {
				d.Timeout, d.Graceful = t, graceful && t != 0
			}
			if by, ok := s.Drains.of(id.Host); ok && s.nodes.listed(id.Host) {
				d = by.order(id, now) // by a call: the files do not name it
			}
			if err := m.Decommission(now, d); err != nil {
				return err
			}
		}
		for _, id := range in {
			if n, _ := m.Node(id); n.State == creel.NodeDecommissioning || n.State == creel.NodeDecommissioned {
				if err := m.Recommission(now, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// RefreshProxyUsers reads the proxy-user rules again.
func (s *Server) RefreshProxyUsers() error {
	if s.cfg.ReloadProxies == nil {
		return nil
	}
	rules, err := s.cfg.ReloadProxies()
	if err != nil {
		return codec.Invalid("the proxy-user rules could not be read: %v", err)
	}
	s.access.proxies.Replace(rules)
	return nil
}

// RefreshGroups clears the cache of users' groups.
func (s *Server) RefreshGroups() {
	s.access.groups.Forget()
	if s.cfg.Outside != nil {
		s.cfg.Outside.Forget() // its answers depend on groups
	}
}

// RefreshServiceACLs reads the service ACLs again, for later connections.
func (s *Server) RefreshServiceACLs() error {
	if s.cfg.ReloadServiceACLs == nil {
		return &creel.Error{
			Kind: creel.ErrNotEnabled,
			What: "Service Authorization (hadoop.security.authorization) not enabled.",
		}
	}
	if err := s.cfg.ReloadServiceACLs(); err != nil {
		return codec.Invalid("the access lists of protocols could not be read: %v", err)
	}
	return nil
}

// RefreshAdmins reads the administrators' ACL again.
func (s *Server) RefreshAdmins() error {
	if s.cfg.ReloadAdmin == nil {
		return nil
	}
	acl, err := s.cfg.ReloadAdmin()
	if err != nil {
		return codec.Invalid("the administrators' ACL could not be read: %v", err)
	}
	s.access.setAdmin(acl)
	return nil
}

// NodeSize is a node with its new size.
type NodeSize struct {
	Node     creel.NodeID
	Resource creel.Resource
}

// ResizeNodes changes the sizes of nodes, which must all be known.
func (s *Server) ResizeNodes(ctx context.Context, sizes []NodeSize) error {
	return s.order(ctx, func(m *rm.Machine, now time.Time) error {
		for _, n := range sizes {
			if _, ok := m.Node(n.Node); !ok {
				return &creel.Error{
					Kind: creel.ErrNodeNotFound,
					What: "Node " + n.Node.String() + " is not registered",
				}
			}
		}
		for _, n := range sizes {
			if err := m.SetNodeResource(now, n.Node, n.Resource); err != nil {
				return err
			}
		}
		return nil
	})
}
