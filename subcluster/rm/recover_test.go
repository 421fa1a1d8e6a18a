// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// A ResourceManager died between recording an AM's node and starting the AM, or before its node could report the AM's
// end.
func TestAMUnknownToNodeRestartsAtOnce(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	node := creel.NodeID{Host: "n", Port: 1}
	am := creel.ContainerID{Attempt: first, ID: 1}
	restarted := func(running ...NodeContainer) (*world, AppView) {
		w := newWorld(t, func(c *Config) { c.Epoch = 1 })
		err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{
			{
				Submission: Submission{
					ID:    id,
					User:  "u",
					Queue: "default",
					AM:    Ask{Resource: creel.NewResource(1024, 1)},
				},
				Submitted: w.now,
				Queue:     "root.default",
				Attempts: []AttemptRecord{
					{ID: first, AM: am, Node: node, Started: w.now, ExitStatus: creel.ExitInvalid},
				},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Second)
		if _, err := w.m.RegisterNode(
			w.now,
			&RegisterNode{ID: node, Resource: creel.NewResource(8192, 8), Containers: running},
		); err != nil {
			t.Fatal(err)
		}
		w.pump()
		w.audit()
		view, ok := w.m.App(id)
		if !ok {
			t.Fatal("the application is lost")
		}
		return w, view
	}

	_, lost := restarted()
	if lost.State != creel.AppAccepted || lost.Attempt.Attempt != 2 {
		t.Errorf(
			"without its AM the application is %v in attempt %v; want a second attempt at once",
			lost.State,
			lost.Attempt,
		)
	}
	w, kept := restarted(
		NodeContainer{
			ID:       am,
			Resource: creel.NewResource(1024, 1),
			State:    creel.ContainerRunning,
			Created:  time.Unix(0, 0),
		},
	)
	if kept.Attempt.Attempt != 1 {
		t.Errorf("an AM that runs was given up: attempt %v", kept.Attempt)
	}
	w.register(first)
	if view, _ := w.m.App(id); view.State != creel.AppRunning {
		t.Errorf("its AM registered and it is %v", view.State)
	}
}

// An AM releases a container before its node has registered with the restarted ResourceManager: the container ends
// when the node reports it.
func TestReleaseBeforeNodeReturnsEndsWithReport(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Epoch = 1 })
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  w.now,
		Queue:      "root.default",
		Attempts:   []AttemptRecord{{ID: first, Started: w.now, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	w.register(first)
	given, kept := creel.ContainerID{Attempt: first, ID: 2}, creel.ContainerID{Attempt: first, ID: 3}
	w.allocate(first, AllocateRequest{Release: []creel.ContainerID{given}})
	node := creel.NodeID{Host: "n", Port: 1}
	running := func(id creel.ContainerID) NodeContainer {
		return NodeContainer{ID: id, Resource: creel.NewResource(1024, 1), State: creel.ContainerRunning}
	}
	if _, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: node, Resource: creel.NewResource(8192, 8), Containers: []NodeContainer{running(given), running(kept)},
	}); err != nil {
		t.Fatal(err)
	}
	w.responses[node] = 0 // as registered
	w.audit()
	if got := w.heartbeat(node).Cleanup; len(got) != 1 || got[0] != given {
		t.Errorf("its node is to kill %v, want %s", got, given)
	}
	if _, live := w.m.Container(kept); !live {
		t.Error("the container that its AM kept is gone")
	}
	done := w.allocate(first, AllocateRequest{}).Completed
	if len(done) != 1 || done[0].ID != given || done[0].ExitStatus != creel.ExitAborted {
		t.Errorf("its AM is told of %v, want the end of %s", done, given)
	}
	w.audit()
}

// A container that an attempt kept from the previous one ends during a restart of the ResourceManager. Its node
// reports that when it registers, and the attempt receives it; otherwise its AM would wait for ever.
func TestKeptContainerCompletionSurvivesRestart(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	attempt := func(n int32) creel.AttemptID { return creel.AttemptID{Application: id, Attempt: n} }
	kept := creel.ContainerID{Attempt: attempt(1), ID: 2}
	ams := [2]creel.ContainerID{{Attempt: attempt(1), ID: 1}, {Attempt: attempt(2), ID: 1}}
	node := creel.NodeID{Host: "n", Port: 1}
	for _, keeps := range []bool{true, false} {
		w := newWorld(t, func(c *Config) { c.Epoch = 1 })
		if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
			Submission: Submission{
				ID: id, User: "u", Queue: "default", KeepContainers: keeps, MaxAttempts: 3,
				AM: Ask{Resource: creel.NewResource(1024, 1)},
			},
			Submitted: w.now,
			Queue:     "root.default",
			Attempts: []AttemptRecord{
				{ID: attempt(1), AM: ams[0], Node: node, Started: w.now, State: creel.AttemptFailed, Finished: w.now},
				{ID: attempt(2), AM: ams[1], Node: node, Started: w.now, ExitStatus: creel.ExitInvalid},
			},
		}}}); err != nil {
			t.Fatal(err)
		}
		ended := func(id creel.ContainerID) NodeContainer {
			return NodeContainer{ID: id, Resource: creel.NewResource(1024, 1), State: creel.ContainerComplete, ExitStatus: 3}
		}
		running := ended(ams[1])
		running.State = creel.ContainerRunning
		if _, err := w.m.RegisterNode(w.now, &RegisterNode{
			ID: node, Resource: creel.NewResource(8192, 8), Containers: []NodeContainer{running, ended(ams[0]), ended(kept)},
		}); err != nil {
			t.Fatal(err)
		}
		w.responses[node] = 0 // as registered
		w.pump()
		w.audit()
		forgotten := w.heartbeat(node).Forget
		w.register(attempt(2))
		told := w.allocate(attempt(2), AllocateRequest{}).Completed
		if !keeps {
			if len(told) != 0 || len(forgotten) != 2 {
				t.Errorf("an attempt that keeps nothing hears of %v, and its node forgets %v", told, forgotten)
			}
			continue
		}
		if len(told) != 1 || told[0].ID != kept || told[0].ExitStatus != 3 {
			t.Errorf("its AM is told of %v, want the end of %s", told, kept)
		}
		if len(forgotten) != 1 || forgotten[0] != ams[0] {
			t.Errorf("before its AM has heard of it the node forgets %v", forgotten)
		}
		w.allocate(attempt(2), AllocateRequest{}) // and so acknowledges it
		if now := w.heartbeat(node).Forget; len(now) != 1 || now[0] != kept {
			t.Errorf("once its AM has heard of it the node forgets %v", now)
		}
		w.audit()
	}
}

// A clock that was set back between two epochs does not delay expiry in the new one: a silent AM expires as long
// after the restart as ever.
func TestClockSetBackDoesNotDelayAMExpiry(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Epoch = 1 })
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	submitted := w.now.Add(5 * time.Minute) // by the clock as it was
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  submitted,
		Queue:      "root.default",
		Attempts:   []AttemptRecord{{ID: first, Started: submitted, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(11 * time.Minute)
	w.m.Tick(w.now)
	if v, _ := w.m.App(id); !v.State.Ended() {
		t.Errorf("eleven minutes after the restart its silent AM is %s", v.State)
	}
}

// However old an application is, its AM has the full expiry interval after a restart: its silence before was caused
// by the ResourceManager.
func TestRestartRenewsAMTimeouts(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Epoch = 1 })
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	submitted := w.now
	w.now = w.now.Add(time.Hour)
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  submitted,
		Queue:      "root.default",
		Attempts:   []AttemptRecord{{ID: first, Started: submitted, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	for _, after := range []struct {
		d    time.Duration
		ends bool
	}{{0, false}, {9 * time.Minute, false}, {2 * time.Minute, true}} {
		w.now = w.now.Add(after.d)
		w.m.Tick(w.now)
		if v, _ := w.m.App(id); v.State.Ended() != after.ends {
			t.Errorf("%v after the restart it is %s", w.now.Sub(submitted)-time.Hour, v.State)
		}
	}
}

// An attempt that waited for its AM's container when its application's record was saved
// had started nothing: after a restart it waits again, and not for an AM that never ran.
func TestAttemptWaitsForContainerAfterRestart(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Volatile = false })
	k := &fakeJournal{apps: map[creel.ApplicationID]AppRecord{}}
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	if err := w.m.Submit(w.now, &Submission{
		ID: id, User: "u", Queue: "default",
		AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
	}); err != nil {
		t.Fatal(err)
	}
	k.take(w.now, w.m)
	if _, err := w.m.SetPriority(w.now, id, 3); err != nil {
		t.Fatal(err)
	}
	k.take(w.now, w.m)
	next := k.successor(t)
	node := &RegisterNode{ID: creel.NodeID{Host: "h", Port: 1}, Resource: creel.NewResource(8192, 8)}
	if _, err := next.m.RegisterNode(next.now, node); err != nil {
		t.Fatal(err)
	}
	if v, _ := next.m.App(id); v.Attempt.Attempt != 1 || v.Containers != 1 {
		t.Errorf("after a restart its attempt %s has %d containers", v.Attempt, v.Containers)
	}
}

// A restart brings back the applications that ended last, as many as it may, and has the
// others forgotten for good.
func TestARestartKeepsTheApplicationsThatEndedLast(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	record := func(n int32, minutes int) AppRecord {
		return AppRecord{
			Submission: Submission{ID: creel.ApplicationID{ClusterTimestamp: 1, ID: n}, User: "u", Queue: "default"},
			Queue:      "root.default", State: creel.AppFinished, Final: creel.FinalSucceeded,
			Submitted: at, Finished: at.Add(time.Duration(minutes) * time.Minute),
		}
	}
	for most, want := range map[int][]int32{0: {1, 2, 3}, 2: {1, 3}, 1: {1}, -1: nil} {
		conf := Defaults()
		conf.ClusterTimestamp, conf.Epoch, conf.RecoveredCompleted = 1, 1, most
		m, err := New(conf)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Recover(at.Add(time.Hour), &Recover{Apps: []AppRecord{record(1, 9), record(2, 3), record(3, 5)}}); err != nil {
			t.Fatal(err)
		}
		var have []int32
		for a := range m.Apps {
			have = append(have, a.ID.ID)
		}
		deleted := 0
		for _, x := range m.Actions(nil) {
			if s, ok := x.(SaveApp); ok && s.Deleted {
				deleted++
			}
		}
		if !slices.Equal(have, want) || deleted != 3-len(want) {
			t.Errorf("of three that ended, %d may come back: %v came, %d were deleted", most, have, deleted)
		}
	}
}

// After a restart a node reports a container of nearly MaxInt64 MB: it is not charged, ends, and its AM receives the
// reason.
func TestARecoveredContainerLargerThanAnyNodeEnds(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Epoch = 1 })
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  w.now,
		Queue:      "root.default",
		Attempts:   []AttemptRecord{{ID: first, Started: w.now, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	w.register(first)
	node := creel.NodeID{Host: "n", Port: 1}
	huge, kept := creel.ContainerID{Attempt: first, ID: 2}, creel.ContainerID{Attempt: first, ID: 3}
	running := func(id creel.ContainerID, mb int64) NodeContainer {
		return NodeContainer{ID: id, Resource: creel.NewResource(mb, 1), State: creel.ContainerRunning}
	}
	if _, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: node, Resource: creel.NewResource(8192, 8),
		Containers: []NodeContainer{running(huge, math.MaxInt64), running(kept, 1024)},
	}); err != nil {
		t.Fatal(err)
	}
	w.responses[node] = 0 // as registered
	w.audit()
	if used := w.m.Cluster().Used; used.MemoryMB != 1024 || used.VCores != 1 {
		t.Errorf("in use are %v, want those of %s alone", used, kept)
	}
	if got := w.heartbeat(node).Cleanup; len(got) != 1 || got[0] != huge {
		t.Errorf("its node is to kill %v, want %s", got, huge)
	}
	done := w.allocate(first, AllocateRequest{}).Completed
	if len(done) != 1 || done[0].ID != huge || done[0].ExitStatus != creel.ExitAborted ||
		!strings.Contains(done[0].Diagnostics, "more memory-mb than a node can have") {
		t.Errorf("its AM is told of %v, want the end of %s and why", done, huge)
	}
	w.audit()
}

// A node reports the creation time of a recovered container. If that is not in the past, the container's age counts
// from its recovery.
func TestRecoveredContainerWithoutTimeStartsNow(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Epoch = 1 })
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  w.now,
		Queue:      "root.default",
		Attempts:   []AttemptRecord{{ID: first, Started: w.now, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	w.register(first)
	past := w.now.Add(-time.Hour)
	node := &RegisterNode{ID: creel.NodeID{Host: "n", Port: 1}, Resource: creel.NewResource(8192, 8)}
	want := map[creel.ContainerID]time.Time{}
	for i, said := range []time.Time{past, w.now, {}, time.UnixMilli(-5), w.now.Add(time.Hour), time.UnixMilli(math.MaxInt64)} {
		c := NodeContainer{
			ID: creel.ContainerID{Attempt: first, ID: int64(i) + 2}, Resource: creel.NewResource(1024, 1),
			State: creel.ContainerRunning, Created: said,
		}
		node.Containers = append(node.Containers, c)
		if want[c.ID] = w.now; i == 0 {
			want[c.ID] = past
		}
	}
	if _, err := w.m.RegisterNode(w.now, node); err != nil {
		t.Fatal(err)
	}
	for i, c := range node.Containers {
		if v, ok := w.m.Container(c.ID); !ok || !v.Created.Equal(want[c.ID]) {
			t.Errorf("%d: a container of %v is of %v (%v), want %v", i, c.Created, v.Created, ok, want[c.ID])
		}
	}
	w.audit()
}

// A recovered live application counts as submitted to its queue. The count is undone if its recovery is rejected or
// dropped, as its end is counted there.
func TestRecoveredContainersCountInQueue(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Epoch = 1 })
	id := func(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }
	record := func(n int32, queue creel.QueuePath, change func(*AppRecord)) AppRecord {
		r := AppRecord{
			Submission: Submission{ID: id(n), User: "u", Queue: string(queue)}, Submitted: w.now, Queue: queue,
		}
		r.Submission.AM.Resource = creel.NewResource(1024, 1)
		change(&r)
		return r
	}
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{
		record(1, "root.default", func(r *AppRecord) { r.State = creel.AppFinished }),
		record(2, "root.default", func(*AppRecord) {}),
		record(3, "root.default", func(r *AppRecord) { r.Hold = Hold{Claim: 7, Why: "sc-2"} }),
		record(4, "root", func(*AppRecord) {}),                                      // which was a leaf when it came
		record(5, "root.default", func(r *AppRecord) { r.State = creel.AppFailed }), // its queue refused it: it counted nowhere
		record(6, "root.default", func(r *AppRecord) {
			r.State = creel.AppFailed
			r.Attempts = []AttemptRecord{{ID: creel.AttemptID{Application: id(6), Attempt: 1}, State: creel.AttemptFailed}}
		}),
	}}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if err := w.m.DropHeld(w.now, id(3), 7); err != nil {
		t.Fatal(err)
	}
	if _, err := w.m.Kill(w.now, id(2), "no longer needed"); err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.audit()
	for _, name := range []string{"root", "root.default"} {
		q, _ := w.m.Queue(name)
		if got := [4]int64{q.AppsSubmitted, q.AppsCompleted, q.AppsFailed, q.AppsKilled}; got != [4]int64{1, 0, 0, 1} {
			t.Errorf("%s: submitted, completed, failed, killed %v", name, got)
		}
	}
	v := w.m.Cluster()
	if got := [4]int64{v.AppsSubmitted, v.AppsCompleted, v.AppsFailed, v.AppsKilled}; got != [4]int64{3, 1, 1, 1} {
		t.Errorf("the cluster: submitted, completed, failed, killed %v", got)
	}
}
