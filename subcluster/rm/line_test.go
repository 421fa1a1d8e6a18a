// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// lineWorld has two queues with a maximum of 16 GB each; AMs of 1 GB may use an eighth of the queue's current limit.
func lineWorld(t *testing.T) (*world, creel.NodeID) {
	w := newWorld(t, func(c *Config) {
		c.Queues.Root.MaxAMPercent = 0.125
		all := queues.PercentOf(100)
		c.Queues.Root.Children = []queues.Queue{
			{Name: "default", Capacity: queues.PercentOf(10), MaxCapacity: all, UserFactor: 100},
			{Name: "other", Capacity: queues.PercentOf(90), MaxCapacity: all, UserFactor: 100},
		}
	})
	return w, w.node("n1", 16384, 64, "")
}

// inQueue is how many containers a queue runs.
func (w *world) inQueue(queue creel.QueuePath) int64 {
	uses, _, _ := w.m.QueueUse(queue, "")
	return uses.MemoryMB / 1024
}

// The AM limit of a queue is a share of its current limit. It rises when another queue releases resources, and then
// waiting AMs start, though nothing ended in their queue.
func TestReleaseInOtherQueueStartsApplications(t *testing.T) {
	w, node := lineWorld(t)
	busy := w.submit("bob", "other", nil)
	w.pump()
	w.register(busy)
	var held []creel.ContainerID
	for _, c := range w.asks(busy, ask(1, "*", 1024, 1, 14)).Granted {
		held = append(held, c.ID)
	}
	for range 2 {
		w.submit("alice", "default", nil)
	}
	w.pump()
	if got := w.inQueue("root.default"); got != 1 {
		t.Fatalf("beside a busy queue %d AMs run, want the one that always may", got)
	}
	w.audit()
	w.release(busy, held...)
	w.pump()
	w.audit()
	w.now = w.now.Add(100 * time.Millisecond) // a line is checked no more often
	w.heartbeat(node)
	w.pump()
	if got := w.inQueue("root.default"); got != 2 {
		t.Errorf("beside an idle queue %d AMs run, want 2", got)
	}
	w.audit()
}

// FairScheduler's AM limit is a share of the queue's fair share. That rises after another queue's last application
// has gone, and is recomputed some time later.
func TestAFairShareThatRisesStartsApplications(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Queues.Scheduler = queues.FairScheduler
		c.Queues.Root.Children = []queues.Queue{
			{Name: "default", Capacity: queues.WeightOf(1), MaxAMPercent: 0.125},
			{Name: "other", Capacity: queues.WeightOf(1), MaxAMPercent: 0.5},
		}
	})
	n := w.node("n1", 16384, 64, "")
	busy := w.submit("bob", "other", nil)
	for range 2 {
		w.submit("alice", "default", nil)
	}
	if got := w.inQueue("root.default"); got != 1 {
		t.Fatalf("with half of the cluster %d AMs run, want 1", got)
	}
	if _, err := w.m.Kill(w.now, busy.Application, ""); err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.now = w.now.Add(time.Second)
	w.heartbeat(n)
	if got := w.inQueue("root.default"); got != 2 {
		t.Errorf("with all of the cluster %d AMs run, want 2", got)
	}
	w.audit()
}

// An application whose AM runs in another subcluster is not held back by the AM share, nor by applications that wait
// for it: two that wait behind each other would never end.
func TestUnmanagedApplicationPassesAMShareWaiters(t *testing.T) {
	w, _ := lineWorld(t)
	for range 5 {
		w.submit("alice", "default", nil)
	}
	w.pump()
	if got := w.inQueue("root.default"); got != 2 {
		t.Fatalf("%d AMs run, want 2", got)
	}
	for _, user := range []string{"alice", "bob"} {
		from := w.unmanaged(user, "default")
		if got := len(w.asks(from, ask(1, "*", 1024, 1, 1)).Granted); got != 1 {
			t.Errorf("the unmanaged AM of %s got %d containers of 1", user, got)
		}
	}
	w.audit()
}

// An application that leaves the line no longer blocks others: smaller AMs wait behind one that is too large for the
// share.
func TestKillOfLargeAMStartsWaiters(t *testing.T) {
	w, _ := lineWorld(t)
	w.submit("alice", "default", nil)
	large := w.submit("alice", "default", func(s *Submission) { s.AM.Resource = creel.NewResource(4096, 1) })
	w.submit("alice", "default", nil)
	w.pump()
	if got := w.inQueue("root.default"); got != 1 {
		t.Fatalf("%d GB of AMs run, want the first", got)
	}
	w.m.Kill(w.now, large.Application, "")
	w.pump()
	if got := w.inQueue("root.default"); got != 2 {
		t.Errorf("with the large one gone %d AMs run, want 2", got)
	}
	w.audit()
}
