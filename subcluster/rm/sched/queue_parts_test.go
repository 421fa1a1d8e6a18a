// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"
	"reflect"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// gb is an amount of so many GiB and as many vcores.
func gb(n int64) amounts.Vec { return amounts.Vec{Memory: n << 10, VCores: n} }

// isGB reports whether an amount is gb(n).
func isGB(v amounts.Vec, n int64) bool {
	want := gb(n)
	return v.Is(&want)
}

func TestReservationsCountAsUsed(t *testing.T) {
	var r reserved
	one, two, used := gb(1), gb(2), gb(4)
	r.add(&one, 1)
	r.add(&two, 1)
	r.add(&one, -1)
	if have := r.and(&used); r.containers != 1 || !isGB(have, 6) || !isGB(used, 4) {
		t.Errorf("%d reservations: %v are used in all, %v without them", r.containers, have, used)
	}
}

func TestLowerOfMaximumAndCapLimitsQueue(t *testing.T) {
	sizes := amounts.Sizes{Types: amounts.Types{N: 2, Check: 2}}
	cap := func(n, until int64) *leases.Cap { return &leases.Cap{Lease: leases.Lease{Amount: gb(n), Until: until}} }
	used, one := gb(4), gb(1)
	for name, c := range map[string]struct {
		cap     *leases.Cap
		now     int64
		count   int64
		admits  bool
		lowered int64
		bounded bool
	}{
		"no cap":           {nil, math.MaxInt64 - 1, 4, true, 8, false},
		"above maximum":    {nil, 0, 5, false, 8, false},
		"smaller cap":      {cap(6, 100), 99, 2, true, 6, true},
		"above cap":        {cap(6, 100), 99, 3, false, 6, true},
		"expired cap":      {cap(6, 100), 100, 1, false, 0, true},
		"cap over maximum": {cap(20, 100), 99, 4, true, 8, true},
	} {
		b := queueBounds{max: gb(8)}
		b.setCap(c.cap)
		if got := b.admits(&sizes, c.now, &used, &one, c.count); got != c.admits {
			t.Errorf("%s: %d more are admitted: %v", name, c.count, got)
		}
		v := gb(10)
		if b.lower(c.now, &v); !isGB(v, c.lowered) || b.bounded != c.bounded {
			t.Errorf("%s: it is lowered to %v, bounded %v", name, v, b.bounded)
		}
	}
}

func TestChildrenClaimByTheirUnits(t *testing.T) {
	sizes := amounts.Sizes{Types: amounts.Types{N: 2, Check: 2}}
	c := capacity{weights: 5, fixed: gb(1)}
	c.claims()
	for _, a := range []queues.Amount{
		queues.WeightOf(2), queues.PercentOf(50), {Unit: queues.Absolute, Resource: creel.NewResource(2048, 2)},
		{Unit: queues.Absolute, Resource: creel.NewResource(1024, 1)}, queues.WeightOf(1),
	} {
		c.claim(&sizes, &a, a.Value)
	}
	if c.weights != 3 || !isGB(c.fixed, 3) {
		t.Errorf("weights %v, amounts %v", c.weights, c.fixed)
	}
}

func TestPlanIsShareOfCluster(t *testing.T) {
	total := gb(10)
	c := capacity{entitled: gb(9)}
	if c.plan(0.3, &total, 2); !isGB(c.entitled, 3) || c.planned != 0.3 {
		t.Errorf("0.3 of %v are %v", total, c.entitled)
	}
}

func TestQueuesInheritSettings(t *testing.T) {
	sizes := amounts.Sizes{Types: amounts.Types{N: 2, Check: 2}, Most: gb(16)}
	above := settings{order: queues.FairShare, nodes: queues.Pack, weight: 3, largest: gb(8), maxAM: 0.4, maxRunning: 7}
	own := queues.Queue{
		Policy: queues.Fifo, NodeOrder: queues.Spread, Capacity: queues.WeightOf(2), MaxAMPercent: 0.2,
		MaxAllocation: creel.NewResource(4096, 0), MaxParallelApps: 1, SizeWeight: true,
	}
	four := amounts.Vec{Memory: 4096, VCores: 8}
	fair, spec := &fairTraits, &queues.Spec{}
	for name, c := range map[string]struct {
		of    queues.Queue
		above *settings
		t     *traits
		want  settings
	}{
		"root without settings": {
			queues.Queue{}, nil, fair, settings{nodes: queues.Spread, weight: 1, largest: gb(16), maxAM: 0.5},
		},
		"all from above": {
			queues.Queue{}, &above, fair,
			settings{order: queues.FairShare, nodes: queues.Pack, weight: 1, largest: gb(8), maxAM: 0.4},
		},
		"an order is not inherited": {
			queues.Queue{}, &above, &capacityTraits,
			settings{nodes: queues.Pack, weight: 1, largest: gb(8), maxAM: 0.4},
		},
		"its own": {
			own, &above, fair,
			settings{queues.Fifo, queues.Spread, true, 2, four, 0.2, 1},
		},
	} {
		if got := settingsOf(&c.of, c.above, spec, &sizes, c.t); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLimitOfActivatedApplications(t *testing.T) {
	for _, c := range []struct {
		most, activated int
		full            bool
	}{{0, 1000, false}, {2, 1, false}, {2, 2, true}, {-1, 0, true}} {
		s := settings{maxRunning: c.most}
		if got := s.full(c.activated); got != c.full {
			t.Errorf("limit %d, %d activated: full %v", c.most, c.activated, got)
		}
	}
}

func TestStoppedQueueDrainsFirst(t *testing.T) {
	var l lifetime
	l.configure(0)
	if l.state != creel.QueueRunning {
		t.Fatalf("a new queue is %v", l.state)
	}
	l.set(creel.QueueStopped, 1)
	l.configure(0) // a reload that names no state changes none
	if l.state != creel.QueueDraining {
		t.Errorf("with an application it is %v", l.state)
	}
	if l.set(creel.QueueStopped, 0); l.state != creel.QueueStopped {
		t.Errorf("without applications it is %v", l.state)
	}
	if l.configure(creel.QueueRunning); l.state != creel.QueueRunning {
		t.Errorf("a reload starts it, and it is %v", l.state)
	}
}

func TestApplicationsInLineAreSummed(t *testing.T) {
	var c appCounts
	one, two := gb(1), gb(2)
	c.line(&one, 1)
	c.line(&two, 1)
	if c.line(&one, -1); c.lined != 1 || !isGB(c.inLine, 2) {
		t.Errorf("%d in line with %v", c.lined, c.inLine)
	}
}
