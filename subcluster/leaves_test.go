// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
)

// A queue found by its leaf is the one that a search of all queues finds, in a view that was built and in a copy with
// other queues.
func TestAQueueIsFoundByItsLeaf(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "root", "ab", "default"})
		path := rapid.Custom(func(t *rapid.T) QueueLoad {
			q := creel.QueuePath("root")
			for _, part := range rapid.SliceOfN(name, 0, 3).Draw(t, "parts") {
				q += creel.QueuePath("." + part)
			}
			return QueueLoad{Queue: q, Label: rapid.SampledFrom([]string{"", "gpu", "x"}).Draw(t, "label")}
		})
		draw := func() []QueueLoad {
			queues := rapid.SliceOfN(path, 0, 40).Draw(t, "queues")
			slices.SortStableFunc(queues, func(a, b QueueLoad) int { return compareQueue(a, b.Queue, b.Label) })
			return queues
		}
		v := NewView(time.Time{}, []Status{{Member: Member{ID: "sc"}, Load: Load{Queues: draw()}}}, nil)
		copied := v.Members[0]
		copied.Load.Queues = draw()
		for _, m := range []*Status{&v.Members[0], &copied} {
			q, label := name.Draw(t, "asked"), rapid.SampledFrom([]string{"", "gpu", "x", "y"}).Draw(t, "on")
			var want *QueueLoad
			for i := range m.Load.Queues {
				l := &m.Load.Queues[i]
				byLeaf := !creel.QueuePath(q).IsFull() && l.Queue.Leaf() == q // "root" is a path
				if l.Label == label && (string(l.Queue) == q || want == nil && byLeaf) {
					want = l
					if string(l.Queue) == q {
						break
					}
				}
			}
			if got := m.QueueOn(creel.QueuePath(q), label); (got == nil) != (want == nil) ||
				got != nil && (got.Queue != want.Queue || got.Label != want.Label) {
				t.Fatalf("%q on %q: %+v, want %+v", q, label, got, want)
			}
		}
	})
}

// A queue named by its leaf at a member of 300.
func BenchmarkQueueByItsLeaf(b *testing.B) {
	var queues []QueueLoad
	for i := range 300 {
		queues = append(queues, QueueLoad{Queue: creel.QueuePath(fmt.Sprintf("root.team%02d.queue%03d", i/10, i))})
	}
	v := NewView(time.Time{}, []Status{{Member: Member{ID: "sc"}, Load: Load{Queues: queues}}}, nil)
	unindexed := v.Members[0]
	unindexed.leaves = nil
	for name, m := range map[string]*Status{"index": &v.Members[0], "look through": &unindexed} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if m.QueueOn("queue270", "") == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
