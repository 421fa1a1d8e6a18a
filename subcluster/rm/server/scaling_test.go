// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
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

// More nodes than their heartbeats can be served for at once are told to send fewer, up
// to the bound, which never makes them send more than is configured.
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
		n := newNodes(cfg)
		n.pace(cfg, tc.nodes)
		if got := time.Duration(n.interval.Load()); got != tc.want {
			t.Errorf("%d nodes, %d heartbeats a second, at most %v: %v", tc.nodes, tc.perSecond, tc.most, got)
		}
	}
}
