// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

func capOf(mb int64, version int64, until time.Time) QueueCap {
	return QueueCap{
		Queue: "root.default", Cap: creel.NewResource(mb, 100), Until: until, Version: version,
		Maximum: creel.NewResource(20480, 100), Short: creel.NewResource(2048, 2), Reason: "others hold the rest",
	}
}

func TestAQueueGrowsToItsCapAndNoFurther(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	a := w.unmanaged("alice", "default")
	w.m.SetQueueCap(w.now, capOf(3072, 1, w.now.Add(time.Minute)))
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 10)).Granted); got != 3 {
		t.Fatalf("%d containers of 1 GiB under a cap of 3 GiB", got)
	}
	w.audit()
	why, _ := w.m.Why(a.Application)
	for _, part := range []string{"root.default", "3072", "of <memory:20480", "others hold the rest"} {
		if !strings.Contains(why.Text, part) {
			t.Errorf("why says %q, without %q", why.Text, part)
		}
	}
	if h := w.allocate(a, AllocateRequest{}).Headroom; h.MemoryMB != 0 {
		t.Errorf("headroom is %s at the cap", h)
	}
	w.m.SetQueueCap(w.now, capOf(5120, 2, w.now.Add(time.Minute)))
	w.m.SetQueueCap(w.now, capOf(9000, 1, w.now.Add(time.Minute))) // late: an older version
	w.pump()
	if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 2 {
		t.Fatalf("%d containers more when the cap rose by 2 GiB", got)
	}
	w.m.SetQueueCap(w.now, capOf(1024, 3, w.now.Add(time.Minute))) // what runs goes on
	w.audit()
	if uses, needs, _ := w.m.QueueUse("root.default"); uses.MemoryMB != 5120 || needs.MemoryMB != 10240 {
		t.Fatalf("uses %s, needs %s", uses, needs)
	}
	w.m.ClearQueueCap(w.now, "root.default")
	w.pump()
	if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 5 {
		t.Fatalf("%d containers when the cap is lifted", got)
	}
	w.audit()
}

func TestACapEndsWithItsLease(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	a := w.unmanaged("alice", "default")
	w.m.SetQueueCap(w.now, capOf(4096, 1, w.now.Add(10*time.Second)))
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 2)).Granted); got != 2 {
		t.Fatal(got)
	}
	w.now = w.now.Add(10 * time.Second)
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 2)).Granted); got != 0 {
		t.Fatalf("%d containers after the lease", got)
	}
	if why, _ := w.m.Why(a.Application); !strings.Contains(why.Text, "is not renewed") {
		t.Errorf("why says %q", why.Text)
	}
	w.m.SetQueueCap(w.now, capOf(4096, 2, w.now.Add(10*time.Second)))
	w.pump()
	if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 2 {
		t.Fatalf("%d containers when the lease is renewed", got)
	}
	w.audit()
}

// Applications that wait for their AM are what the queue needs: the share for AMs is of the
// cap, and a cap that did not count them would let them wait for ever.
func TestApplicationsInLineAreNeeded(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	w.m.SetQueueCap(w.now, capOf(1024, 1, w.now.Add(time.Minute)))
	for range 5 {
		w.submit("alice", "default", nil)
	}
	w.pump()
	uses, needs, _ := w.m.QueueUse("root.default")
	if uses.MemoryMB != 1024 || needs.MemoryMB != 5*1024 {
		t.Fatalf("one AM of five under the cap: uses %s, needs %s", uses, needs)
	}
	w.m.SetQueueCap(w.now, capOf(needs.MemoryMB, 2, w.now.Add(time.Minute)))
	w.pump()
	if got, _, _ := w.m.QueueUse("root.default"); got.MemoryMB <= uses.MemoryMB {
		t.Errorf("with all it needs it uses %s", got)
	}
	w.audit()
}
