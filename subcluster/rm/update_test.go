// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// waitingIncrease is a full node with two containers, of which the first waits to
// become larger.
func waitingIncrease(t *testing.T, to int64) (*world, creel.AttemptID, []Grant) {
	w := newWorld(t, nil)
	w.node("n1", 4096, 8, "")
	id := w.unmanaged("u", "default")
	got := w.asks(id, ask(1, "*", 2048, 1, 2)).Granted
	if len(got) != 2 {
		t.Fatalf("granted %v", got)
	}
	w.increase(id, got[0].ID, 0, to)
	return w, id, got
}

func (w *world) increase(id creel.AttemptID, c creel.ContainerID, version int32, to int64) *Answer {
	return w.allocate(id, AllocateRequest{Updates: []Update{
		{Container: c, Version: version, Kind: Increase, Resource: creel.NewResource(to, 1)},
	}})
}

func TestAnIncreaseGetsTheRoomThatAppears(t *testing.T) {
	w, id, got := waitingIncrease(t, 3072)
	w.increase(id, got[0].ID, 0, 4096) // the newer one counts
	w.audit()
	out := w.allocate(id, AllocateRequest{Release: []creel.ContainerID{got[1].ID}})
	if len(out.Updated) != 1 || out.Updated[0].Grant.Resource.MemoryMB != 4096 || out.Updated[0].Grant.Version != 1 {
		t.Fatalf("updated %+v", out.Updated)
	}
	w.audit()
}

func TestAnIncreaseIsForgottenWithItsContainer(t *testing.T) {
	w, id, got := waitingIncrease(t, 3072)
	w.release(id, got[0].ID)
	w.audit()
	if n := len(w.m.apps.attempt(id).growing); n != 0 {
		t.Errorf("%d increases still wait", n)
	}
	if out := w.allocate(id, AllocateRequest{Release: []creel.ContainerID{got[1].ID}}); len(out.Updated) != 0 {
		t.Errorf("updated %+v", out.Updated)
	}
	w.audit()
}

func TestAnIncreaseOfAFormerVersionIsRefused(t *testing.T) {
	w, id, got := waitingIncrease(t, 3072)
	out := w.allocate(id, AllocateRequest{Updates: []Update{
		{Container: got[0].ID, Kind: Demote},
	}})
	if len(out.Updated) != 1 || len(out.UpdateErrors) != 1 ||
		out.UpdateErrors[0].Reason != "INCORRECT_CONTAINER_VERSION_ERROR" || out.UpdateErrors[0].Version != 1 {
		t.Fatalf("updated %+v, refused %+v", out.Updated, out.UpdateErrors)
	}
	w.audit()
}

// The acknowledgement of an increase comes late: the increase was rolled back, and there is another one by then.
func TestLateAcknowledgementConfirmsNoLaterIncrease(t *testing.T) {
	for applied, want := range map[int64]int64{4096: 2048, 3072: 3072} {
		const expiry = 10 * time.Second
		w := newWorld(t, func(c *Config) { c.ContainerExpiry = expiry })
		n := w.node("n1", 4096, 8, "")
		id := w.unmanaged("u", "default")
		c := w.asks(id, ask(1, "*", 2048, 1, 1)).Granted[0].ID
		w.heartbeat(n, ContainerStatus{ID: c, State: creel.ContainerRunning})
		expire := func() (mb int64) {
			w.now = w.now.Add(expiry)
			w.m.Tick(w.now)
			w.pump()
			return w.m.sizeOf(w.m.apps.container(c)).V.Memory
		}
		w.increase(id, c, 0, 4096)
		if mb := expire(); mb != 2048 {
			t.Fatalf("%d MiB: the increase is not rolled back", mb)
		}
		w.increase(id, c, w.m.apps.container(c).rare().version, 3072)
		w.m.NodeHeartbeat(w.now, &NodeReport{
			ID: n, ResponseID: w.responses[n], Increased: []ContainerSize{{c, creel.NewResource(applied, 1)}},
		})
		if mb := expire(); mb != want {
			t.Errorf("after the acknowledgement of %d MiB it has %d, want %d", applied, mb, want)
		}
		w.audit()
	}
}
