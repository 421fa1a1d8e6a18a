// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel/subcluster/nm/overallocate"
)

// Period is the time between two looks of a node at its use: yarn.nodemanager.container-monitor.interval-ms.
const Period = 3 * time.Second

// MostLent is the most that a node lends, over its size: yarn.resourcemanager.overallocation.per-node-max-ratio.
const MostLent = 4

// The modes of a run.
const (
	None      = "none"      // nodes measure their use, and lend nothing
	Threshold = "threshold" // nodes lend below a fixed part of their size
	NSigma    = "n-sigma"   // below the peak that N-sigma predicts
	Peak      = "peak"      // below the larger of N-sigma and the sum of percentiles
)

var modes = []string{None, Threshold, NSigma, Peak}

// Modes returns the names of the modes.
func Modes() []string { return slices.Clone(modes) }

// Play is the configuration and the counts of a run whose nodes measure their use.
type Play struct {
	Node   overallocate.Config // zero in mode None
	Seed   uint64              // of the containers' use
	Until  time.Time           // Result counts the looks before it
	Surges []Surge
	Result Result
}

// Surge is a time in which all containers use at least a fraction of their size.
type Surge struct {
	From, To time.Time
	Least    float64
}

// Result is the gain and the cost of lending.
type Result struct {
	Nodes Looks // of all nodes, with work for them

	Lent      int64         // containers received by AMs
	Promoted  int64         // of these, containers that became guaranteed while they ran
	ForUse    int64         // killed to lower a node's use
	ForRoom   int64         // killed for a guaranteed container
	CoresLost time.Duration // vcores of the killed containers times their run time
	Cores     time.Duration // vcores of all containers times their run time
	Displaced int64         // looks at which a guaranteed container waited for lent ones
}

// Looks are sums over looks at nodes, in milli-cores and MB.
type Looks struct {
	Count  int64
	Above  int64               // looks at which the containers needed more than the node has
	Size   overallocate.Amount // of the nodes
	Run    overallocate.Amount // sizes of the containers that ran
	Use    overallocate.Amount // at most the size of each node
	Needed overallocate.Amount // the use without this bound
}

// New returns the play of a mode.
func New(mode string, seed uint64, until time.Time) (*Play, error) {
	if !slices.Contains(modes, mode) {
		return nil, fmt.Errorf("overcommitment is one of %s, not %q", strings.Join(modes, ", "), mode)
	}
	p := &Play{Seed: seed, Until: until}
	if mode == None {
		return p, nil
	}
	// The thresholds of preemption and the looks are YARN-1011's defaults. It has no default of allocation.
	p.Node = overallocate.Config{
		Alloc:   overallocate.Shares{Memory: 0.8, CPU: 0.8},
		Preempt: overallocate.Shares{Memory: 0.95, CPU: 0.99},
		Looks:   4,
	}
	if mode != Threshold { // a predicted peak needs no reserve besides
		p.Node.Predicts = true
		p.Node.Alloc = overallocate.Shares{Memory: 0.9, CPU: overallocate.MostAlloc}
	}
	if mode == NSigma {
		p.Node.Estimate = overallocate.NSigma
	}
	return p, nil
}

// Draw draws surges of a run with faults.
func (p *Play) Draw(rnd *rand.Rand, from time.Time) {
	for at := from; at.Before(p.Until); {
		at = at.Add(time.Minute + time.Duration(rnd.Int64N(int64(5*time.Minute))))
		end := at.Add(time.Duration(rnd.Int64N(int64(2 * time.Minute))))
		p.Surges, at = append(p.Surges, Surge{at, end, 0.6 + 0.4*rnd.Float64()}), end
	}
}

// Counts returns the run's counts, nil for a run without measurements.
func (p *Play) Counts() *Result {
	if p == nil {
		return nil
	}
	return &p.Result
}

// least returns the fraction of their size that all containers use at least.
func (p *Play) least(now time.Time) (fraction float64) {
	for _, s := range p.Surges {
		if !now.Before(s.From) && now.Before(s.To) {
			fraction = max(fraction, s.Least)
		}
	}
	return fraction
}
