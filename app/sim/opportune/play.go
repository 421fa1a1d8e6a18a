// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel/app/sim/overcommit"
	"github.com/creelrm/creel/subcluster/nm/queue"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// DrawShare draws the fraction of a seed's asks that are for opportunistic containers: zero in two of three seeds.
func DrawShare(rnd *rand.Rand) float64 {
	if rnd.IntN(3) > 0 {
		return 0
	}
	return math.Round(100*(0.1+0.8*rnd.Float64())) / 100
}

// Play is the configuration and the counts of a run with opportunistic containers; nil for a run without them.
type Play struct {
	Share   float64 // of the containers that AMs ask for
	Central opportunistic.Config
	Queue   queue.Config  // of each node
	Pauses  bool          // executors can pause a process
	Promote float64       // fraction of the started opportunistic containers that their AMs promote
	Losing  float64       // fraction of the answers with promotions that are lost
	Kills   time.Duration // mean time between kills of processes with waiting containers; 0: none
	Result  Result

	Lending *overcommit.Play // nodes measure their use; nil: they do not

	LongQueue int32 // of each proxy

	Distributed bool       // proxies place containers
	Published   Keys       // in the store
	Placements  Placements // reported to members

	rnd *rand.Rand // of lost answers
}

// Result counts the opportunistic containers of a run.
type Result struct {
	Granted  int64           // received by AMs
	Placed   int64           // of them, placed by proxies
	AtOnce   int64           // started when they arrived at their nodes
	Waits    []time.Duration // of the others, from the arrival to the start, sorted
	ForRoom  int64           // ended by their nodes for a guaranteed container
	Shed     int64           // ended while they waited: the queue was full, or above the ResourceManager's limit
	Promoted int64           // promotions that nodes have applied
}

// length is the length of nodes' queues without faults, as Hadoop's documentation suggests.
const length = 10

// New returns nil for a share of 0 without lending. draws is the source of a seed's configuration of nodes and
// ResourceManagers; nil means the usual one, and no promotions.
func New(share float64, lending *overcommit.Play, draws, lost *rand.Rand) *Play {
	if share <= 0 && lending == nil {
		return nil
	}
	p := &Play{
		Share: share, Central: opportunistic.Defaults(), Queue: queue.Config{Length: length},
		Published: Keys{}, Placements: Placements{}, rnd: lost, Lending: lending,
	}
	if draws != nil {
		p.draw(draws)
	}
	if lending != nil && lending.Node.Enabled() {
		p.Central.MostLent = overcommit.MostLent
	}
	return p
}

// Lends returns the play of overcommitment, nil for none.
func (p *Play) Lends() *overcommit.Play {
	if p == nil {
		return nil
	}
	return p.Lending
}

func (p *Play) draw(rnd *rand.Rand) {
	p.Queue = queue.Config{
		Length: 1 + rnd.IntN(12), Pause: rnd.IntN(3) == 0, Adaptive: rnd.IntN(4) == 0,
		ByWork: rnd.IntN(4) == 0, Patience: time.Minute,
	}
	p.Pauses = rnd.IntN(2) == 0
	if rnd.IntN(3) == 0 {
		p.Central.Comparator = opportunistic.QueueLengthThenResources
	}
	if rnd.IntN(3) == 0 {
		p.Central.Lengths = opportunistic.Range{Min: 1, Max: 2} // so that nodes shed
	}
	if rnd.IntN(3) == 0 {
		p.Central.PerCall = 1 + rnd.IntN(10)
	}
	p.Central.NodesUsed = 1 + rnd.IntN(10)
	p.Promote = 0.4 * rnd.Float64()
	if rnd.IntN(2) == 0 {
		p.Losing = 0.5
	}
	if rnd.IntN(2) == 0 {
		p.Kills = 2 * time.Minute
	}
	p.Follow(Rules{Wait: rnd.IntN(4) == 0, Move: rnd.IntN(3) == 0})
	if rnd.IntN(2) == 0 {
		p.LongQueue = 1 + rnd.Int32N(5)
	}
}

// Configure sets a node's queue.
func (p *Play) Configure(c *queue.Config) {
	if p != nil {
		*c = p.Queue
	}
}

// Loses draws whether an answer with promotions is lost.
func (p *Play) Loses() bool { return p != nil && p.Losing > 0 && p.rnd.Float64() < p.Losing }

// Counts returns the run's counts.
func (p *Play) Counts() Result {
	if p == nil {
		return Result{}
	}
	r := p.Result
	slices.Sort(r.Waits)
	return r
}

// Started counts an opportunistic container that starts after a wait in its node's queue.
func (r *Result) Started(waited time.Duration) {
	if waited <= 0 {
		r.AtOnce++
	} else {
		r.Waits = append(r.Waits, waited)
	}
}

// Killed counts a container that its node ended without its AM's or its ResourceManager's wish. overcommit.Result has
// those that ended for their use.
func (r *Result) Killed(why opportunistic.Kill) {
	switch why {
	case opportunistic.ForRoom:
		r.ForRoom++
	case opportunistic.QueueFull, opportunistic.OverLimit:
		r.Shed++
	}
}
