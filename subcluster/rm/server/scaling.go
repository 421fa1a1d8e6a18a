// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

// Scaling makes nodes that are busier than the cluster send heartbeats less often, and idler ones more often:
// yarn.resourcemanager.nodemanagers.heartbeat-interval-scaling-enable.
type Scaling struct {
	Min, Max time.Duration // limits of the interval
	// SpeedUp and SlowDown are factors of the difference between a node's processor use and the cluster's (0..1). By
	// that fraction the interval is shorter for a node with less use than the cluster, longer for one with more.
	SpeedUp, SlowDown float64
}

// scaled is the interval for a node with a fraction node (0..1) of its processors in use, in a cluster with a
// fraction cluster in use.
func (s *Scaling) scaled(interval time.Duration, node, cluster float64) time.Duration {
	node, cluster = min(1, max(0, node)), min(1, max(0, cluster))
	factor := 1 - (cluster-node)*s.SpeedUp
	if node > cluster {
		factor = 1 + (node-cluster)*s.SlowDown
	}
	return min(s.Max, max(s.Min, time.Duration(float64(interval)*factor)))
}

// processors is the fraction of all nodes' processors in use, computed at most once a second, because it iterates
// over all nodes. Only the owner uses it.
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
			// Count whole processors of the node's total, as Hadoop does. One node's absurd measurement must not make
			// the cluster look busy.
			used += int64(min(1, max(0, ofProcessors(&n))) * float64(n.Total.VCores))
			all += n.Total.VCores
		}
	}
	p.at, p.share = now, float64(used)/float64(max(all, 1))
	return p.share
}

// ofProcessors is the fraction of a node's processors in use.
func ofProcessors(n *rm.NodeView) float64 {
	return float64(n.Utilization.NodeCPU) / float64(max(n.Physical.VCores, 1))
}

// intervalOf is a node's pause before its next heartbeat. The owner calls it before the node's heartbeat takes
// effect, as in Hadoop.
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
	if told > s.cfg.HeartbeatInterval { // with so many nodes, each waits longer
		return max(told, scaled)
	}
	return scaled
}
