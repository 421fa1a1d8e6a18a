// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// A crowded morning, with faults, in which queues below their guarantee take from
// others: every application ends as it must, and is audited as always.
func TestACrowdedMorningWithPreemption(t *testing.T) {
	all := int64(0)
	for _, seed := range []uint64{1, 2, 5} {
		c := faulty(t, seed)
		c.NodeSize = creel.NewResource(2048, 4)
		c.Queues.Preemption = queues.Preemption{
			On: true, Interval: time.Second, Wait: 3 * time.Second, PerRound: 0.5, IgnoredOver: 0.1, Termination: 1,
			IntraQueue: true, IntraFrom: 0.5, IntraMost: 0.2,
		}
		r := run(t, c)
		if !r.Good() {
			t.Errorf("seed %d: %d of %d finished: %v", seed, r.Finished, r.Submitted, r.Broken)
		}
		lost := int64(0)
		for _, s := range r.Subclusters {
			lost += s.Preempted
		}
		t.Logf("seed %d: %d containers were taken back; grants took %v at p99", seed, lost, Quantile(r.Waits, 0.99))
		all += lost
	}
	if all < 10 {
		t.Errorf("%d containers were taken back on three mornings: they are not crowded", all)
	}
}

// Three hours of the recorded day on 150 nodes of one core: jobs of more than twenty tasks exceed their guarantee of
// 30 % for hours, and small ones come in between. With preemption the small ones begin sooner, and the cost of that
// is counted. The auditor checks that no queue is preempted below its guarantee.
func TestPreemptionShortensTheWaitsOfShortJobs(t *testing.T) {
	type outcome struct {
		r           *Result
		short, long QueueResult
		looks       int
	}
	play := func(on bool) (out outcome) {
		c := day(t, 1, 9*time.Hour, 12*time.Hour, 50)
		c.NodeSize, c.AuditEvery = creel.NewResource(1024, 1), 500_000
		leaf := func(name string, percent float64) queues.Queue {
			return queues.Queue{
				Name: name, Capacity: queues.PercentOf(percent), MaxCapacity: queues.PercentOf(100),
				UserFactor: 10, MaxAMPercent: 0.5,
			}
		}
		c.Queues.Root.Children = []queues.Queue{leaf("short", 70), leaf("long", 30)}
		for i := range c.Jobs {
			c.Jobs[i].Queue = "root.long"
			if c.Jobs[i].Tasks() <= 20 {
				c.Jobs[i].Queue = "root.short"
			}
		}
		c.Queues.Preemption = queues.Preemption{
			On: on, Interval: 3 * time.Second, Wait: 5 * time.Second, PerRound: 1, Termination: 1,
		}
		w, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		out.r = w.Run()
		if !out.r.Good() || out.r.Finished != out.r.Submitted || len(out.r.Queues) != 2 || out.r.Virtual < 3*time.Hour {
			t.Fatalf("%d of %d finished in %v: %v", out.r.Finished, out.r.Submitted, out.r.Virtual, out.r.Broken)
		}
		out.long, out.short, out.looks = out.r.Queues[0], out.r.Queues[1], w.audit.kept
		return out
	}
	off, on := play(false), play(true)
	p99 := func(sorted []time.Duration) time.Duration { return Quantile(sorted, 0.99) }
	t.Logf("p99 of short jobs: from ask to grant %v and %v with preemption, to the first AM %v and %v",
		p99(off.short.Waits), p99(on.short.Waits), p99(off.short.Starts), p99(on.short.Starts))
	t.Logf("taken back: %d containers of long jobs and %d of short ones, %v lost; looked at %d times",
		on.long.Preempted, on.short.Preempted, on.long.Lost, on.looks)
	if p99(on.short.Waits) >= p99(off.short.Waits) || 3*p99(on.short.Starts) > 2*p99(off.short.Starts) {
		t.Error("with preemption short jobs wait as long as without")
	}
	// A round, the notice, and a heartbeat of the AM are 9 s.
	if most := 10 * time.Second; p99(on.short.Waits) > most || p99(on.short.Starts) > most {
		t.Errorf("with preemption short jobs wait longer than %v", most)
	}
	if off.long.Preempted+off.short.Preempted > 0 || !off.long.Lost.IsZero() || off.looks > 0 {
		t.Errorf("without preemption %d and %d containers were taken back", off.long.Preempted, off.short.Preempted)
	}
	// Preempted containers were asked for and granted again.
	if on.long.Preempted < 20 || on.looks < 10 || on.long.Containers < off.long.Containers+on.long.Preempted/2 {
		t.Errorf("%d containers were granted to long jobs, %d without preemption, and %d taken back",
			on.long.Containers, off.long.Containers, on.long.Preempted)
	}
	taken := int64(0)
	for _, m := range on.r.Subclusters {
		taken += m.Preempted
	}
	if taken != on.long.Preempted+on.short.Preempted {
		t.Errorf("members have taken back %d, queues lost %d and %d", taken, on.long.Preempted, on.short.Preempted)
	}
	// Each had a gigabyte and a core, and ran for some seconds at least.
	if l := on.long.Lost; l.VCores < on.long.Preempted || l.MemoryMB < 1000*l.VCores || l.MemoryMB > 1050*l.VCores {
		t.Errorf("%d containers had %v in all, by seconds", on.long.Preempted, l)
	}
}
