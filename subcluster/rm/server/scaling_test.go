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
