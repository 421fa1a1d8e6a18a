// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

var start = time.Unix(1_700_000_000, 0).UTC()

// world drives a machine the way handlers do: it launches AMs at once and
// keeps the response ids.
type world struct {
	t         testing.TB
	m         *Machine
	now       time.Time
	ids       map[creel.AttemptID]int32
	responses map[creel.NodeID]int32
	apps      int32
	got       []Action
}

func newWorld(t testing.TB, change func(*Config)) *world {
	t.Helper()
	cfg := Defaults()
	cfg.Volatile = true
	cfg.ClusterTimestamp = 1
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, m: m, now: start, ids: map[creel.AttemptID]int32{}, responses: map[creel.NodeID]int32{}}
}

func (w *world) node(name string, mb, cores int64, rack string) creel.NodeID {
	w.t.Helper()
	id := creel.NodeID{Host: name, Port: 1}
	r, err := w.m.RegisterNode(
		w.now,
		&RegisterNode{ID: id, HTTPPort: 8042, Rack: rack, Resource: creel.Resource{MemoryMB: mb, VCores: cores}},
	)
	if err != nil || r.Action != NodeNormal {
		w.t.Fatal(r, err)
	}
	w.pump()
	return id
}

// pump performs the actions: AMs start at once.
func (w *world) pump() {
	for {
		acts := w.m.Actions(nil)
		if len(acts) == 0 {
			return
		}
		w.got = append(w.got, acts...)
		for _, a := range acts {
			switch a := a.(type) {
			case LaunchAM:
				if !a.Unmanaged {
					w.m.AMLaunched(w.now, a.Attempt)
				}
			case SaveApp:
				if !a.Deleted {
					w.m.Saved(w.now, a.Seq)
				}
			case SaveAttempt:
				w.m.Saved(w.now, a.Seq)
			}
		}
	}
}

func (w *world) submit(user, queue string, change func(*Submission)) creel.AttemptID {
	w.t.Helper()
	w.apps++
	s := &Submission{ID: creel.ApplicationID{ClusterTimestamp: 1, ID: w.apps}, User: user, Queue: queue,
		AM: Ask{ResourceName: "*", Resource: creel.Resource{MemoryMB: 1024, VCores: 1}, Count: 1}}
	if change != nil {
		change(s)
	}
	if err := w.m.Submit(w.now, s); err != nil {
		w.t.Fatal(err)
	}
	w.pump()
	return creel.AttemptID{Application: s.ID, Attempt: 1}
}

// unmanaged submits an application without an AM container and registers it.
func (w *world) unmanaged(user, queue string) creel.AttemptID {
	w.t.Helper()
	id := w.submit(user, queue, func(s *Submission) { s.Unmanaged = true })
	w.register(id)
	return id
}

func (w *world) register(id creel.AttemptID) AMRegistration {
	w.t.Helper()
	r, err := w.m.RegisterAM(w.now, &RegisterAM{Attempt: id, Host: "am"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ids[id] = 0
	w.pump()
	return r
}

func (w *world) allocate(id creel.AttemptID, r AllocateRequest) *Answer {
	w.t.Helper()
	r.ResponseID = w.ids[id]
	out, err := w.m.Allocate(w.now, id, &r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ids[id] = out.ResponseID
	w.pump()
	return out
}

func ask(priority int32, name string, mb, cores int64, count int32) Ask {
	return Ask{
		Priority:     priority,
		ResourceName: name,
		Resource:     creel.Resource{MemoryMB: mb, VCores: cores},
		Count:        count,
	}
}

func (w *world) asks(id creel.AttemptID, asks ...Ask) *Answer {
	w.t.Helper()
	return w.allocate(id, AllocateRequest{Asks: asks})
}

func (w *world) release(id creel.AttemptID, cs ...creel.ContainerID) *Answer {
	w.t.Helper()
	return w.allocate(id, AllocateRequest{Release: cs})
}

func (w *world) heartbeat(id creel.NodeID, cs ...ContainerStatus) *NodeAnswer {
	w.t.Helper()
	out := w.m.NodeHeartbeat(w.now, &NodeReport{ID: id, ResponseID: w.responses[id], Containers: cs})
	w.responses[id] = out.ResponseID
	w.pump()
	return out
}

func (w *world) audit() {
	w.t.Helper()
	if err := w.m.Audit(); err != nil {
		w.t.Fatal(err)
	}
}

func TestAnAskFindsRoomInTheSameCall(t *testing.T) {
	w := newWorld(t, nil)
	n := w.node("n1", 8192, 8, "")
	w.audit()
	id := w.submit("alice", "default", nil)
	w.audit()
	if v, _ := w.m.App(id.Application); v.State != creel.AppAccepted {
		t.Fatal(v.State)
	}
	w.register(id)
	out := w.asks(id, ask(1, "*", 2048, 1, 3))
	w.audit()
	if len(out.Granted) != 3 || out.Granted[0].Node != n || out.Granted[0].Reason != sched.OffSwitch ||
		len(out.NMTokens) != 1 {
		t.Fatalf("%+v", out) // the AM runs on n, but the token it was started with stays with the starter
	}
	cid := out.Granted[0].ID
	w.heartbeat(n, ContainerStatus{ID: cid, State: creel.ContainerRunning})
	w.heartbeat(n, ContainerStatus{ID: cid, State: creel.ContainerComplete, ExitStatus: 3, Diagnostics: "boom"})
	w.audit()
	out = w.release(id, creel.NewContainerID(id, 0, 3))
	if len(out.Completed) != 2 || out.Completed[0].ExitStatus != 3 || out.Completed[1].ExitStatus != creel.ExitAborted {
		t.Fatalf("%+v", out.Completed)
	}
	w.audit()
	done, err := w.m.FinishAM(w.now, &FinishAM{Attempt: id, Status: creel.FinalSucceeded})
	if !done || err != nil {
		t.Fatal(done, err)
	}
	w.heartbeat(n, ContainerStatus{ID: creel.NewContainerID(id, 0, 1), State: creel.ContainerComplete})
	w.audit()
	v, _ := w.m.App(id.Application)
	if v.State != creel.AppFinished || v.Final != creel.FinalSucceeded || v.Containers != 0 {
		t.Fatalf("%+v", v)
	}
	if c := w.m.Cluster(); c.Containers != 0 || c.AppsCompleted != 1 {
		t.Fatalf("%+v", c)
	}
}

// A further resource type is counted on nodes, applications, users and queues as
// memory and vcores are, and comes back with its container.
// A type with a unit is counted without: a node may have terabytes of disk, and not more than there can be.
func TestNodeMayHaveLargeCustomResource(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ResourceTypes = []creel.ResourceType{{Name: "disk", Unit: "G"}} })
	node := creel.NodeID{Host: "h", Port: 1}
	for bytes, want := range map[int64]NodeAction{
		2e12: NodeNormal, 1 << 50: NodeNormal, 1<<50 + 1: NodeStop, math.MaxInt64: NodeStop,
	} {
		r := creel.NewResource(8192, 8, creel.Amount{Name: "disk", Value: bytes})
		if out, err := w.m.RegisterNode(w.now, &RegisterNode{ID: node, Resource: r}); err != nil || out.Action != want {
			t.Errorf("a node with %d of disk: %v %q, %v; want %v", bytes, out.Action, out.Diagnostics, err, want)
		}
	}
}

func TestFurtherResourceTypesAreCounted(t *testing.T) {
	gpus := func(mb, n int64) creel.Resource {
		return creel.NewResource(mb, 1, creel.Amount{Name: "yarn.io/gpu", Value: n})
	}
	w := newWorld(t, func(c *Config) {
		c.Queues.Calculator = queues.Dominant
		c.ResourceTypes = []creel.ResourceType{{Name: "yarn.io/gpu"}}
	})
	if _, err := w.m.RegisterNode(
		w.now,
		&RegisterNode{
			ID:       creel.NodeID{Host: "n1", Port: 1},
			Resource: creel.NewResource(16384, 16, creel.Amount{Name: "yarn.io/gpu", Value: 5}),
		},
	); err != nil {
		t.Fatal(err)
	}
	id := w.unmanaged("alice", "default")
	out := w.asks(id, Ask{Priority: 1, ResourceName: "*", Resource: gpus(1024, 2), Count: 3}, ask(2, "*", 2048, 1, 2))
	w.audit()
	if len(out.Granted) != 4 || out.PendingContainers != 1 {
		t.Fatalf("granted %d, pending %d, want 4 and the third with GPUs", len(out.Granted), out.PendingContainers)
	}
	var used creel.Resource
	for _, g := range out.Granted {
		used = used.Add(g.Resource)
	}
	if !used.Equal(gpus(6144, 4).Add(creel.Resource{VCores: 3})) {
		t.Fatal(used)
	}
	if v, _ := w.m.App(id.Application); !v.Used.Equal(used) || !v.Pending.Equal(gpus(1024, 2)) {
		t.Fatalf("used %v, pending %v", v.Used, v.Pending)
	}
	if out = w.release(id, out.Granted[0].ID); len(out.Granted) != 1 {
		t.Fatalf("the GPUs that came back were not given: %+v", out)
	}
	w.audit()
	if v, _ := w.m.App(id.Application); !v.Used.Equal(used) || !v.Pending.IsZero() {
		t.Fatalf("used %v, pending %v", v.Used, v.Pending)
	}
}

// With the memory-only calculator a node without GPUs gets containers that ask for GPUs, as in Hadoop.
func TestMemoryOnlyLooksAtMemoryOnly(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Queues.Calculator = queues.MemoryOnly
		c.ResourceTypes = []creel.ResourceType{{Name: "yarn.io/gpu"}}
	})
	w.node("n1", 4096, 1, "/r1")
	id := w.unmanaged("alice", "default")
	out := w.asks(
		id,
		Ask{
			Priority:     1,
			ResourceName: "*",
			Resource:     creel.NewResource(1024, 1, creel.Amount{Name: "yarn.io/gpu", Value: 2}),
			Count:        5,
		},
	)
	w.audit()
	if len(out.Granted) != 4 {
		t.Fatalf("granted %d, want as many as memory has room for", len(out.Granted))
	}
}

// A queue that was at its maximum when resources became free gets them when the maximum rises, also if its AM called
// meanwhile.
func TestHeartbeatKeepsQueueStoppedByMaximum(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Queues.Scheduler = queues.FairScheduler
		c.Queues.Root.Children = []queues.Queue{
			{
				Name:         "a",
				Capacity:     queues.WeightOf(1),
				MaxCapacity:  queues.AbsoluteOf(creel.Resource{MemoryMB: 12288, VCores: 100}),
				MaxAMPercent: 1,
			},
		}
	})
	w.node("n1", 4096, 100, "")
	id := w.unmanaged("alice", "root.a")
	big := w.asks(id, ask(1, "*", 4096, 1, 1)).Granted[0].ID
	w.asks(id, ask(2, "*", 3072, 1, 4))
	w.node("n0", 1024, 100, "")  // too small; afterwards a change of the cluster causes no retries
	w.node("n2", 16384, 100, "") // two fit under the maximum
	if out := w.asks(id); len(out.Granted) != 2 || out.PendingContainers != 2 {
		t.Fatalf("%+v", out)
	}
	// The third goes where the big one was, the fourth beside the first two.
	if out := w.release(id, big); len(out.Granted) != 2 {
		t.Fatalf(
			"%d granted, %d wait while n2 has room and the queue may have more",
			len(out.Granted),
			out.PendingContainers,
		)
	}
	w.audit()
}
