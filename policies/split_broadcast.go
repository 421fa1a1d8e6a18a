// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// broadcastSplit asks every open member for all of the group. Unlike with Hadoop's BroadcastAMRMProxyPolicy, the AM
// never gets more containers than it asked for. The plan is hedged: with each grant the session lowers the other
// members' asks, and it releases late containers.
type broadcastSplit struct{ weights Weights }

func (broadcastSplit) name() string { return "broadcast" }

func (b broadcastSplit) given() Weights { return b.weights }

func (broadcastSplit) with(w Weights) splitRule { return broadcastSplit{w} }

func (broadcastSplit) from(w Weights, _ float64, _ int64) splitRule { return broadcastSplit{w} }

func (broadcastSplit) place(*splitDecision, int64, *rand.Rand) string { return "" }

func (broadcastSplit) all(d *splitDecision) string {
	for _, i := range d.open {
		d.shares[i] = d.group.Count
	}
	return fmt.Sprintf("each of %d members is asked for all %d; the first grant wins", len(d.open), d.group.Count)
}
