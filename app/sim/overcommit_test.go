// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim/overcommit"
)

// measured is a crowded part of a day on a node that measures its use.
func measured(t testing.TB, seed uint64, mode string) Config {
	c := day(t, seed, 9*time.Hour, 9*time.Hour+8*time.Minute, 1)
	c.Subclusters, c.NodeSize, c.NodeHeartbeat = 1, creel.NewResource(16384, 8), time.Second
	c.Overcommit = mode
	return c
}

// overcommitted runs a day, and fails if a rule is broken.
func overcommitted(t testing.TB, c Config) *Result {
	t.Helper()
	logged(t, &c)
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := w.Run()
	if !r.Good() {
		t.Fatalf("%s: %d of %d ended: %s", c.Overcommit, r.Finished+r.Failed, r.Submitted, strings.Join(r.Broken, "\n"))
	}
	return r
}

// Nodes that lend serve asks sooner than nodes that do not, and the containers do not need more than the nodes have.
func TestLendingNodesServeAsksSooner(t *testing.T) {
	without := overcommitted(t, measured(t, 1, overcommit.None))
	if o := without.Overcommit; o.Lent != 0 || o.Nodes.Count == 0 {
		t.Fatalf("without lending: %+v", o)
	}
	waits := func(r *Result) (sum time.Duration) {
		for _, w := range r.Waits {
			sum += w
		}
		return sum
	}
	for _, mode := range overcommit.Modes()[1:] {
		r := overcommitted(t, measured(t, 1, mode))
		with := r.Overcommit
		if with.Lent == 0 || with.Promoted == 0 || with.Promoted > with.Lent || with.CoresLost > with.Cores/50 {
			t.Errorf("%s: %+v", mode, with)
		}
		if with.Nodes.Above > with.Nodes.Count/100 {
			t.Errorf("%s: above the node at %d of %d looks", mode, with.Nodes.Above, with.Nodes.Count)
		}
		if waits(r)*2 > waits(without) {
			t.Errorf("%s: asks waited %v, and %v without lending", mode, waits(r), waits(without))
		}
	}
}

// All containers use more, and then their whole size: the auditor sees that the youngest lent ones end, and then all.
func TestLentContainersEndWhenUseRises(t *testing.T) {
	c := measured(t, 1, overcommit.Threshold)
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		from := origin.Add(warmUp + time.Duration(1+i)*time.Minute)
		w.opportune.Lending.Surges = append(w.opportune.Lending.Surges, overcommit.Surge{
			From: from, To: from.Add(20 * time.Second), Least: []float64{0.8, 0.9, 1}[i%3],
		})
	}
	r := w.Run()
	if !r.Good() {
		t.Fatalf("%v", r.Broken)
	}
	if o := r.Overcommit; o.ForUse == 0 || o.Lent == 0 {
		t.Errorf("%d killed for use of %d lent: %+v", o.ForUse, o.Lent, o)
	}
}

func TestOvercommitmentIsRepeatable(t *testing.T) {
	a, b := run(t, measured(t, 2, overcommit.Peak)), run(t, measured(t, 2, overcommit.Peak))
	if a.Hash != b.Hash || a.Overcommit.Nodes != b.Overcommit.Nodes {
		t.Errorf("%x and %x", a.Hash, b.Hash)
	}
}

// Under all faults, and with times at which all containers use their whole size.
func TestSeedsWithOvercommitment(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	var sum overcommit.Result
	for seed := range uint64(*seeds) {
		seed += *first
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := faulty(t, seed)
			c.NodeSize, c.Overcommit = creel.NewResource(4096, 2), overcommit.Modes()[1+seed%3]
			o := overcommitted(t, c).Overcommit
			sum.Lent, sum.Promoted = sum.Lent+o.Lent, sum.Promoted+o.Promoted
			sum.ForUse, sum.ForRoom = sum.ForUse+o.ForUse, sum.ForRoom+o.ForRoom
		})
	}
	if *seeds < defaultSeeds {
		return // a few seeds need not draw every kind
	}
	if sum.Lent == 0 || sum.Promoted == 0 || sum.ForUse == 0 || sum.ForRoom == 0 {
		t.Errorf("%+v", sum)
	}
}
