// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// A queue that was made on demand ends when it was empty for its time. A queue that a reload configured meanwhile, as a
// leaf or as a parent, stays.
func TestConfiguredQueueOutlivesItsIdleTime(t *testing.T) {
	share := func(name string, children ...queues.Queue) queues.Queue {
		return queues.Queue{Name: name, Capacity: queues.WeightOf(1), Children: children}
	}
	tree := func(a ...queues.Queue) queues.Spec {
		spec := queues.Default()
		spec.Scheduler = queues.FairScheduler
		spec.Root.Children = []queues.Queue{share("a", append(a, share("x"))...)}
		return spec
	}
	for name, c := range map[string]struct {
		reload *queues.Spec
		stays  bool
	}{
		"not configured": {nil, false},
		"still absent":   {new(tree()), false},
		"as a leaf":      {new(tree(share("made"))), true},
		"as a parent":    {new(tree(share("made", share("y")))), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(&Config{
				MinAllocation: creel.NewResource(1024, 1), MaxAllocation: creel.NewResource(8192, 8), Queues: tree(),
			})
			if err != nil {
				t.Fatal(err)
			}
			s.main.idle(s.CreateQueue("root.a.made"))
			if c.reload != nil {
				if err := s.Reload(*c.reload); err != nil {
					t.Fatal(err)
				}
			}
			s.At(int64(5*time.Minute) - 1)
			if s.Tick(); s.main.tree.Find("root.a.made") == nil {
				t.Fatal("it ended before its time")
			}
			s.At(int64(5 * time.Minute))
			if s.Tick(); (s.main.tree.Find("root.a.made") != nil) != c.stays {
				t.Errorf("it stays: %t, want %t", !c.stays, c.stays)
			}
		})
	}
}
