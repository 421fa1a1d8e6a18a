// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// What a queue may use is written in the unit of its capacity, never more than was given,
// and never below its guarantee, which Hadoop refuses.
func TestMaximaAreWrittenInTheUnitOfTheQueue(t *testing.T) {
	above := creel.NewResource(16384, 64)
	for _, c := range []struct {
		capacity string
		to       creel.Resource
		want     string
	}{
		{"30", creel.NewResource(8192, 64), "50"},
		{"30", creel.NewResource(8191, 64), "49.993"}, // rounded down
		{"30", creel.NewResource(8192, 16), "30"},     // its cores allow 25 %
		{"30", creel.NewResource(0, 0), "30"},
		{"0", creel.NewResource(0, 0), "0"},
		{"2w", creel.NewResource(4096, 64), "25"},
		{"30", creel.NewResource(99999, 999), "100"},
		{"[memory=1024,vcores=1]", creel.NewResource(2048, 1<<40), "[memory=2048,vcores=64,yarn.io/gpu=4]"},
		{"[memory=1024,vcores=1]", creel.NewResource(1<<40, 8), "[memory=16384,vcores=8,yarn.io/gpu=4]"}, // the parent's
		{"[memory=1024,vcores=2]", creel.NewResource(512, 4), "[memory=1024,vcores=4,yarn.io/gpu=4]"},
		{"[memory=1Gi, vcores=2]", creel.NewResource(0, 0), "[memory=1024,vcores=2,yarn.io/gpu=4]"},
		{"[memory=0,vcores=0]", creel.NewResource(0, 0), "[memory=1,vcores=0,yarn.io/gpu=4]"}, // no memory is no maximum
	} {
		h := &HadoopQueues{
			conf:   map[string]string{"yarn.scheduler.capacity.root.a.capacity": c.capacity},
			maxima: map[subcluster.QueueOn]creel.Resource{{Queue: "root.a"}: above.With("yarn.io/gpu", 4)},
		}
		if got := h.text("root.a", c.to, above); got != c.want {
			t.Errorf("%s of %s by a capacity of %s is %q, want %q", c.to, above, c.capacity, got, c.want)
		}
	}
}

// A cluster that has lost nodes counts with the size that it had, until they do not come
// back within Linger.
func TestAClusterThatShrankCountsWithItsFormerSize(t *testing.T) {
	h := &HadoopQueues{Linger: time.Minute}
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		mb    int64
		want  float64
	}{
		{0, 1000, 1}, {time.Second, 250, 4}, {30 * time.Second, 500, 2}, {61 * time.Second, 500, 1}, {62 * time.Second, 800, 1},
	} {
		if factor := h.grow(now.Add(c.after), "", creel.NewResource(c.mb, 1)); factor != c.want {
			t.Errorf("after %s with %d MB it counts %v times, want %v", c.after, c.mb, factor, c.want)
		}
	}
}
