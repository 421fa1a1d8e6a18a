// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// nodes is the state of nodes outside the machine: the included and excluded hosts, their addresses, and the
// heartbeat interval.
type nodes struct {
	interval  atomic.Int64 // ns
	addresses sync.Map     // host -> ip, resolved once

	untrackUnlisted bool // Config.UntrackUnlisted

	mu    sync.RWMutex
	hosts Hosts

	drains *Drains
}

func newNodes(cfg Config, drains *Drains) *nodes {
	n := &nodes{untrackUnlisted: cfg.UntrackUnlisted, drains: drains}
	n.interval.Store(int64(cfg.HeartbeatInterval))
	return n
}

// wanted reports whether a host is admitted, and no call drains it.
func (n *nodes) wanted(host string) bool {
	_, drains := n.drains.of(host)
	return !drains && n.listed(host)
}

// registers reports whether nodes of a host may register: those that drain may, since their containers continue.
func (n *nodes) registers(host string) bool {
	d, drains := n.drains.of(host)
	return !(drains && d.AtOnce) && n.listed(host)
}

// listed reports whether the files admit a host.
func (n *nodes) listed(host string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if slices.Contains(n.hosts.Exclude, host) {
		return false
	}
	return len(n.hosts.Include) == 0 && !n.untrackUnlisted || slices.Contains(n.hosts.Include, host)
}

// tracked reports whether a host is on a list, or unlisted hosts are admitted.
func (n *nodes) tracked(host string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, drains := n.drains.of(host)
	return drains || len(n.hosts.Include) == 0 || slices.Contains(n.hosts.Include, host) ||
		slices.Contains(n.hosts.Exclude, host)
}

func (n *nodes) setHosts(h Hosts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts = h
}

// pace adjusts the heartbeat interval to keep the load below the configured one: with more nodes, each node sends
// heartbeats less often.
func (n *nodes) pace(cfg Config, count int) {
	interval := cfg.HeartbeatInterval
	if cfg.HeartbeatsPerSecond > 0 {
		interval = max(interval, time.Duration(count)*time.Second/time.Duration(cfg.HeartbeatsPerSecond))
	}
	n.interval.Store(int64(min(interval, max(cfg.HeartbeatInterval, cfg.HeartbeatMax))))
}

// service returns a node's ip:port for tokens, and whether its name resolves; if not, it returns host:port.
func (n *nodes) service(ctx context.Context, id creel.NodeID) (service string, resolves bool) {
	port := strconv.Itoa(int(id.Port))
	if net.ParseIP(id.Host) != nil {
		return net.JoinHostPort(id.Host, port), true
	}
	if ip, ok := n.addresses.Load(id.Host); ok {
		return net.JoinHostPort(ip.(string), port), true
	}
	found, err := net.DefaultResolver.LookupIP(ctx, "ip4", id.Host)
	if err != nil || len(found) == 0 {
		return net.JoinHostPort(id.Host, port), false
	}
	n.addresses.Store(id.Host, found[0].String())
	return net.JoinHostPort(found[0].String(), port), true
}

// HeartbeatInterval returns the time that nodes wait between heartbeats.
func (s *Server) HeartbeatInterval() time.Duration { return time.Duration(s.nodes.interval.Load()) }

// RegisterNode registers a node and resolves its Rack. The context limits the lookup of its address. An error means
// that its host is excluded and the node must stop.
func (s *Server) RegisterNode(ctx context.Context, who Caller, r *rm.RegisterNode) (Op[rm.NodeRegistration], error) {
	const name = "registerNodeManager"
	if !s.nodes.registers(r.ID.Host) {
		// NodeManagers log these words of Hadoop's.
		err := &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: "Disallowed NodeManager from  " + r.ID.Host + ", Sending SHUTDOWN signal to the NodeManager.",
		}
		s.Audit(who, name, r.ID.String(), err)
		return Op[rm.NodeRegistration]{}, err
	}
	service, resolves := s.nodes.service(ctx, r.ID)
	if !resolves && s.cfg.NodesResolve {
		err := &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: fmt.Sprintf("hostname cannot be resolved (ip=%s, hostname=%s)", who.Remote.Addr().Unmap(), r.ID.Host),
		}
		s.Audit(who, name, r.ID.String(), err)
		return Op[rm.NodeRegistration]{}, err
	}
	r.Rack, r.Untracked = s.cfg.Rack(r.ID.Host), !s.nodes.tracked(r.ID.Host)
	s.secrets.setService(r.ID, service)
	return Op[rm.NodeRegistration]{
		name:   name,
		target: r.ID.String(),
		Run: func(m *rm.Machine, now time.Time) func() (rm.NodeRegistration, error) {
			registered, err := m.RegisterNode(now, r)
			if d, drains := s.Drains.of(r.ID.Host); err == nil && drains && registered.Action != rm.NodeStop {
				err = m.Decommission(now, d.order(r.ID, now))
			}
			if err != nil {
				return Failed[rm.NodeRegistration](err)
			}
			return Done(registered)
		},
	}, nil
}

// Heartbeat performs a node's heartbeat. The owner calls taken with the action for the node. answer is called once,
// from a responder, with the answer and the time to the next heartbeat. On an error it is called at once.
func (s *Server) Heartbeat(
	r *rm.NodeReport, taken func(rm.NodeAction), answer func(a *rm.NodeAnswer, next time.Duration, err error),
) {
	n := s.metrics.Heartbeats.Add(1)
	err := s.box.post(func(m *rm.Machine, now time.Time) func() {
		s.traces.reported(r)
		next := s.intervalOf(m, now, r)
		end := s.metrics.HeartbeatTimes.begin(n)
		a := *m.NodeHeartbeat(now, r)
		if end != nil {
			end()
		}
		taken(a.Action)
		s.Renewer.KeepAlive(r.KeepAlive)
		a.Cleanup, a.Apps, a.Forget = slices.Clone(a.Cleanup), slices.Clone(a.Apps), slices.Clone(a.Forget)
		a.Update, a.Signals = slices.Clone(a.Update), slices.Clone(a.Signals)
		return func() { answer(&a, next, nil) }
	})
	if err != nil {
		answer(nil, 0, err)
	}
}

// UnregisterNode removes a node that stops. The owner calls taken.
func (s *Server) UnregisterNode(id creel.NodeID, taken func()) Op[struct{}] {
	return Op[struct{}]{
		name:   "unRegisterNodeManager",
		target: id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			m.UnregisterNode(now, id)
			taken()
			return Done(struct{}{})
		},
	}
}

// UpdateNodeResource changes a node's size at an administrator's order.
func (s *Server) UpdateNodeResource(who Caller, id creel.NodeID, r creel.Resource) Op[struct{}] {
	return Op[struct{}]{
		name:   "updateNodeResource",
		target: id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			switch _, known := m.Node(id); {
			case !s.access.isAdmin(who.User):
				return Failed[struct{}](
					denied("User %s doesn't have permission to call 'updateNodeResource'", who.User),
				)
			case !known:
				return Failed[struct{}](
					&creel.Error{Kind: creel.ErrNodeNotFound, What: "nodeId, " + id.String() + ", is not found"},
				)
			}
			return Failed[struct{}](m.SetNodeResource(now, id, r))
		},
	}
}
