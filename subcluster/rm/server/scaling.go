// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

// Scaling has nodes that are busier than the cluster send heartbeats less often, and idler
// ones more often, as yarn.resourcemanager.nodemanagers.heartbeat-interval-scaling-enable
// has it.
type Scaling struct {
	Min, Max time.Duration // bounds of the interval
	// SpeedUp and SlowDown are factors of the difference between a node's processor use and the cluster's (0..1). The
	// node's interval is shorter by that part if it is less used than the cluster, longer if more.
	SpeedUp, SlowDown float64
}

// scaled is the interval for a node of which share (0..1) of the processors are in use, in
// a cluster of which another share is.
func (s *Scaling) scaled(interval time.Duration, node, cluster float64) time.Duration {
	node, cluster = min(1, max(0, node)), min(1, max(0, cluster))
	factor := 1 - (cluster-node)*s.SpeedUp
	if node > cluster {
		factor = 1 + (node-cluster)*s.SlowDown
	}
	return min(s.Max, max(s.Min, time.Duration(float64(interval)*factor)))
}

// processors is how much of the nodes' processors is in use, summed at most once a second:
// it looks at every node. It is the owner's.
type processors struct {
	at    time.Time
	share float64
}

func (p *processors) inUse(m *rm.Machine, now time.Time) float64 {
	if !p.at.IsZero() && now.Sub(p.at) < time.Second {
		return p.share
	}
	var used, all int64
	for n := range m.Nodes {
		if n.State.Usable() {
			// Whole processors of the node's total, as Hadoop counts. An absurd measurement of one node must not make
			// the cluster look busy.
			used += int64(min(1, max(0, ofProcessors(&n))) * float64(n.Total.VCores))
			all += n.Total.VCores
		}
	}
	p.at, p.share = now, float64(used)/float64(max(all, 1))
	return p.share
}

// ofProcessors is which share of a node's own processors is in use.
func ofProcessors(n *rm.NodeView) float64 {
	return float64(n.Utilization.NodeCPU) / float64(max(n.Physical.VCores, 1))
}

// intervalOf is how long a node shall wait until its next heartbeat; it is called within the
// owner, before the node's own heartbeat counts, as Hadoop does it.
func (s *Server) intervalOf(m *rm.Machine, now time.Time, r *rm.NodeReport) time.Duration {
	told := s.HeartbeatInterval()
	if s.cfg.Scaling == nil {
		return told
	}
	n, known := m.Node(r.ID)
	if !known {
		return told
	}
	scaled := s.cfg.Scaling.scaled(s.cfg.HeartbeatInterval, ofProcessors(&n), s.processors.inUse(m, now))
	if told > s.cfg.HeartbeatInterval { // so many nodes that each waits longer
		return max(told, scaled)
	}
	return scaled
}
