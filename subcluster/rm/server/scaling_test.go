// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

func TestBusyNodesSendHeartbeatsLessOften(t *testing.T) {
	s := Scaling{Min: 500 * time.Millisecond, Max: 3 * time.Second, SpeedUp: 1, SlowDown: 4}
	for _, tc := range []struct {
		node, cluster float64
		want          time.Duration
	}{
		{0.5, 0.5, time.Second},
		{0.75, 0.5, 2 * time.Second},
		{1, 0.25, 3 * time.Second}, // at most
		{0.25, 0.5, 750 * time.Millisecond},
		{0, 0.75, 500 * time.Millisecond}, // at least
		{7, 0.75, 2 * time.Second},        // more than all is all
	} {
		if got := s.scaled(time.Second, tc.node, tc.cluster); got != tc.want {
			t.Errorf("%v of a node in %v of the cluster: %v", tc.node, tc.cluster, got)
		}
	}
}

// A node that measures more vcores in use than it has counts as fully used, and does not affect other nodes: they
// would seem idle in a busy cluster and get a shorter interval.
func TestANodeUsesAtMostAllItsProcessors(t *testing.T) {
	for _, tc := range []struct {
		vcores float32 // in use on the third node
		want   float64 // of the cluster
	}{{4, 0.5}, {8, 2 / 3.}, {1 << 20, 2 / 3.}, {math.MaxFloat32, 2 / 3.}, {-math.MaxFloat32, 1 / 3.}} {
		cfg := rm.Defaults()
		cfg.Volatile, cfg.ClusterTimestamp = true, 1
		m, err := rm.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1_700_000_000, 0)
		for i, vcores := range []float32{4, 4, tc.vcores} {
			id, size := creel.NodeID{Host: "n", Port: int32(i)}, creel.NewResource(8192, 8)
			if _, err := m.RegisterNode(now, &rm.RegisterNode{ID: id, Resource: size, Physical: size}); err != nil {
				t.Fatal(err)
			}
			m.NodeHeartbeat(now, &rm.NodeReport{ID: id, Utilization: &rm.NodeUse{NodeCPU: vcores}})
		}
		var p processors
		if got := p.inUse(m, now); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("of three nodes two are half in use, one uses %g of 8 vcores: %g of all in use, want %g", tc.vcores, got, tc.want)
		}
	}
}

// More nodes than the server can serve get a longer interval, up to a bound that is never shorter than the configured
// interval.
func TestTheIntervalOfManyNodesHasABound(t *testing.T) {
	for _, tc := range []struct {
		perSecond, nodes     int
		interval, most, want time.Duration
	}{
		{100, 50, time.Second, 10 * time.Second, time.Second},
		{100, 400, time.Second, 10 * time.Second, 4 * time.Second},
		{100, 5000, time.Second, 10 * time.Second, 10 * time.Second},
		{100, 5000, time.Second, 3 * time.Second, 3 * time.Second},
		{100, 5000, 5 * time.Second, 3 * time.Second, 5 * time.Second},
		{-1, 5000, time.Second, 10 * time.Second, time.Second},
	} {
		cfg := Config{HeartbeatsPerSecond: tc.perSecond, HeartbeatInterval: tc.interval, HeartbeatMax: tc.most}
		n := newNodes(cfg, &Drains{})
		n.pace(cfg, tc.nodes)
		if got := time.Duration(n.interval.Load()); got != tc.want {
			t.Errorf("%d nodes, %d heartbeats a second, at most %v: %v", tc.nodes, tc.perSecond, tc.most, got)
		}
	}
}
