// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// balancedSplit is ours: places first, then room, then size. What is wanted
// somewhere is asked there. The rest is shared by the room that each member
// has for this application now (its last headroom, or what the view shows free
// for the queue, less what is already pending there). What exceeds all room
// waits where it will wait the least: by size of the member over what is
// pending. A UAM is started only for at least uamAt containers, or when
// those who are already in have no room.
type balancedSplit struct {
	weights Weights
	uamAt   int64 // 0 means defaultUAMAt
}

// defaultUAMAt: one container is not worth an application in another
// ResourceManager.
const defaultUAMAt = 2

func (balancedSplit) name() string { return "balanced" }

func (balancedSplit) from(w Weights, _ float64, uamAt int64) splitRule {
	return balancedSplit{w, uamAt}
}

func (b balancedSplit) place(d *splitDecision, n int64, _ *rand.Rand) string {
	local := d.placeLocal(n)
	n -= local
	if n == 0 {
		return fmt.Sprintf("all %d are asked where their places are", local)
	}
	rooms := make([]int64, len(d.reach))
	var inside int64 // room where the application already is
	for _, i := range d.open {
		rooms[i] = max(0, d.room(i)-d.newHere(i))
		if d.reach[i].Home || d.reach[i].UAM {
			inside += rooms[i]
		}
	}
	uamAt := b.uamAt
	if uamAt <= 0 {
		uamAt = defaultUAMAt
	}
	weights := make([]float64, len(d.reach))
	for _, i := range d.open {
		if n < uamAt && inside >= n && !d.reach[i].Home && !d.reach[i].UAM {
			rooms[i] = 0
			continue
		}
		weights[i] = float64(rooms[i]) * b.weights.of(d.reach[i].Member)
		if d.reach[i].Home && weights[i] == 0 && rooms[i] > 0 {
			weights[i] = float64(rooms[i])
		}
	}
	byRoom := apportion(n, weights, rooms)
	fitted := sum(byRoom, nil)
	for i, more := range byRoom {
		d.shares[i] += more
	}
	n -= fitted
	if n == 0 {
		return fmt.Sprintf("%d where their places are, %d by room", local, fitted)
	}
	for _, i := range d.open {
		weights[i] = d.size(i) * max(b.weights.of(d.reach[i].Member), 1e-9) / float64(1+d.reach[i].Pending+d.shares[i])
	}
	for i, more := range apportion(n, weights, nil) {
		d.shares[i] += more
	}
	return fmt.Sprintf(
		"%d where their places are, %d by room, %d must wait, shared by size over pending",
		local,
		fitted,
		n,
	)
}

// newHere is what this split has given a member and Pending does not count.
func (d *splitDecision) newHere(i int) int64 {
	held := int64(0)
	for _, h := range d.group.Held {
		if h.Member == d.reach[i].Member {
			held = h.Count
		}
	}
	return max(0, d.shares[i]-held)
}

// size of a member in containers of the group, at least 1.
func (d *splitDecision) size(i int) float64 {
	m, ok := d.view.Member(d.reach[i].Member)
	if !ok {
		return 1
	}
	return max(1, float64(fitting(m.Load.Metrics.Total(), d.group.Size)))
}
