// SPDX-License-Identifier: Apache-2.0

package policies

import "math/rand/v2"

// homeSplit asks only home. This is Hadoop's HomeAMRMProxyPolicy.
type homeSplit struct{}

func (homeSplit) name() string { return "home" }

func (homeSplit) given() Weights { return nil }

func (r homeSplit) with(Weights) splitRule { return r }

func (homeSplit) from(Weights, float64, int64) splitRule { return homeSplit{} }

func (homeSplit) place(d *splitDecision, n int64, _ *rand.Rand) string {
	// Also if home is closed: this policy uses no other member.
	clear(d.shares)
	d.shares[d.home] = d.group.Count
	return "home is asked for everything"
}

// rejectSplit rejects every ask: Hadoop's RejectAMRMProxyPolicy.
type rejectSplit struct{}

func (rejectSplit) name() string { return "reject" }

func (rejectSplit) given() Weights { return nil }

func (r rejectSplit) with(Weights) splitRule { return r }

func (rejectSplit) from(Weights, float64, int64) splitRule { return rejectSplit{} }

func (rejectSplit) place(*splitDecision, int64, *rand.Rand) string { return "rejected" }
