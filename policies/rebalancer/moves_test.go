// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// usualTerms are the settings' defaults.
var usualTerms = MoveTerms{PerMinute: 60, QueuePercent: 20, DeadBand: 0.2, Again: 10 * time.Minute}

// moveMember is a member of 100 GB with a part in use, and applications that wait.
func moveMember(id creel.SubclusterID, state subcluster.State, used, running, waiting int64, queues ...creel.QueuePath) subcluster.Status {
	m := subcluster.Status{Member: subcluster.Member{ID: id}, State: state}
	m.Load.Metrics = subcluster.ClusterMetrics{
		TotalMB: 100 << 10, AvailableMB: (100 - used) << 10, AppsRunning: running, AppsPending: waiting,
		TotalVirtualCores: 100, AvailableVirtualCores: 100 - used,
	}
	for _, q := range queues {
		m.Load.Queues = append(m.Load.Queues, subcluster.QueueLoad{Queue: q})
	}
	return m
}

func waitingIn(home creel.SubclusterID, queue creel.QueuePath, n int) (out []WaitingApplication) {
	for i := range n {
		out = append(out, WaitingApplication{
			creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}, home, queue, time.Unix(int64(i), 0), "",
		})
	}
	return out
}

func TestDrainMovesOldestFirstWithinBudget(t *testing.T) {
	in := &MoveInput{
		View: subcluster.NewView(time.Time{}, []subcluster.Status{
			moveMember("sc-1", subcluster.StateDraining, 90, 9, 5, "root.a", "root.only"),
			moveMember("sc-2", subcluster.StateActive, 10, 1, 0, "root.a"),
			moveMember("sc-3", subcluster.StateActive, 95, 10, 3, "root.a"),
			moveMember("sc-4", subcluster.StateLost, 0, 0, 0, "root.a", "root.only"),
		}, nil),
		Now: time.Unix(1000, 0), Drained: map[creel.SubclusterID]string{"sc-1": "sc-1 is drained"},
		Waiting: waitingIn("sc-1", "root.a", 5),
	}
	in.Waiting = append(in.Waiting, WaitingApplication{
		creel.ApplicationID{ClusterTimestamp: 2, ID: 1}, "sc-1", "root.only", time.Unix(0, 0), ""})
	in.Past = []PastMove{
		{Application: in.Waiting[0].Application, From: "sc-1", To: "sc-2", At: time.Unix(400, 0)}, // not again for ten minutes
	}
	in.Past[0].At = in.Now.Add(-5 * time.Minute)
	terms := usualTerms
	terms.PerMinute = 3
	chosen, notes := ChooseMoves(in, terms)
	if len(chosen) != 3 {
		t.Fatalf("%v %q", chosen, notes)
	}
	for i, c := range chosen {
		if c.Application.ID != int32(i+2) || c.To != "sc-2" || c.Why != "sc-1 is drained" {
			t.Errorf("move %d is %+v", i, c)
		}
	}
	text := strings.Join(notes, "\n")
	for _, want := range []string{"root.only", "3 applications a minute"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing is said of %q: %s", want, text)
		}
	}
	// Moves that began within the minute count.
	for i := range 3 {
		in.Past = append(in.Past, PastMove{Application: creel.ApplicationID{ID: int32(50 + i)}, Under: true, From: "sc-1", To: "sc-2"})
	}
	if chosen, _ := ChooseMoves(in, terms); len(chosen) != 0 {
		t.Errorf("above the budget: %v", chosen)
	}
	// Applications that wait with a member that is silent, or has left, do not count against it.
	for i, gone := range []creel.SubclusterID{"sc-4", "sc-5", "sc-4"} {
		in.Past[1+i].From = gone
	}
	if chosen, _ := ChooseMoves(in, terms); len(chosen) != 3 {
		t.Errorf("beside moves of members that are not there: %v", chosen)
	}
}

// Where the policy of a queue places no homes, none of its applications move, whatever capacity is free there.
func TestNothingMovesIfPolicyPlacesNoHomes(t *testing.T) {
	in := &MoveInput{
		View: subcluster.NewView(time.Time{}, []subcluster.Status{
			moveMember("sc-1", subcluster.StateDraining, 90, 9, 5, "root.a"),
			moveMember("sc-2", subcluster.StateActive, 0, 0, 0, "root.a"),
			moveMember("sc-3", subcluster.StateActive, 50, 5, 0, "root.a"),
		}, nil),
		Now: time.Unix(1000, 0), Waiting: waitingIn("sc-1", "root.a", 5),
		Excludes: func(q creel.QueuePath, id creel.SubclusterID) bool { return q == "root.a" && id == "sc-2" },
	}
	terms := usualTerms
	terms.Loaded = true
	for _, drained := range []map[creel.SubclusterID]string{{"sc-1": "sc-1 is drained"}, nil} {
		in.Drained = drained
		chosen, notes := ChooseMoves(in, terms)
		if len(chosen) == 0 {
			t.Errorf("nothing moves: %q", notes)
		}
		for _, c := range chosen {
			if c.To != "sc-3" {
				t.Errorf("it goes where its policy gives no homes: %+v", c)
			}
		}
	}
	in.Excludes = func(creel.QueuePath, creel.SubclusterID) bool { return true }
	if chosen, notes := ChooseMoves(in, terms); len(chosen) != 0 ||
		!strings.Contains(strings.Join(notes, ""), "except sc-1, sc-2, sc-3, where its policy places no homes") {
		t.Errorf("%v %q", chosen, notes)
	}
}

// The store's clock was set back by an hour: earlier moves have dates in the future, and do not stop moves for that
// hour.
func TestMovesContinueAfterClockSetBack(t *testing.T) {
	in := &MoveInput{
		View: subcluster.NewView(time.Time{}, []subcluster.Status{
			moveMember("sc-1", subcluster.StateDraining, 90, 9, 5, "root.a"),
			moveMember("sc-2", subcluster.StateActive, 10, 1, 0, "root.a"),
		}, nil),
		Now: time.Unix(10_000, 0), Drained: map[creel.SubclusterID]string{"sc-1": "sc-1 is drained"},
		Waiting: waitingIn("sc-1", "root.a", 5),
	}
	for i := range 60 {
		in.Past = append(in.Past, PastMove{
			Application: in.Waiting[i%5].Application, From: "sc-1", To: "sc-2", Queue: "root.a",
			At: in.Now.Add(time.Duration(i+1) * time.Minute),
		})
	}
	if chosen, notes := ChooseMoves(in, usualTerms); len(chosen) != 5 {
		t.Errorf("%v %q", chosen, notes)
	}
}

func TestLoadedMemberMovesYoungestBeyondDeadBand(t *testing.T) {
	view := func(used, free int64) *subcluster.View {
		return subcluster.NewView(time.Time{}, []subcluster.Status{
			moveMember("sc-1", subcluster.StateActive, used, 10, 20, "root.a", "root.b"),
			moveMember("sc-2", subcluster.StateActive, free, 10, 0, "root.a", "root.b"),
		}, nil)
	}
	in := &MoveInput{View: view(100, 50), Now: time.Unix(1000, 0), Waiting: waitingIn("sc-1", "root.a", 20)}
	terms := usualTerms
	if chosen, _ := ChooseMoves(in, terms); len(chosen) != 0 {
		t.Errorf("nobody asked for it: %v", chosen)
	}
	terms.Loaded = true
	chosen, notes := ChooseMoves(in, terms)
	if len(chosen) != 4 || chosen[0].Application.ID != 20 || chosen[0].To != "sc-2" {
		t.Fatalf("a fifth of a queue a minute, the youngest first: %v %q", chosen, notes)
	}
	terms.QueuePercent = 100
	if chosen, _ := ChooseMoves(in, terms); len(chosen) != 10 {
		t.Errorf("%d are moved where ten have room", len(chosen))
	}
	in.Optout = func(q creel.QueuePath) bool { return q == "root.a" }
	if chosen, notes := ChooseMoves(in, terms); len(chosen) != 0 || !strings.Contains(fmt.Sprint(notes), "opted out") {
		t.Errorf("the queue has opted out: %v %q", chosen, notes)
	}
	in.Optout = nil
	in.View = view(100, 85)
	if chosen, _ := ChooseMoves(in, terms); len(chosen) != 0 {
		t.Errorf("within the dead band: %v", chosen)
	}
	in.View = view(100, 50)
	in.View.Members[1].Load.Metrics.AppsPending = 11
	if chosen, _ := ChooseMoves(in, terms); len(chosen) != 0 {
		t.Errorf("others wait there for the room: %v", chosen)
	}
}

// Applications waiting for nodes of a label move by the state of these nodes alone: to members that have them and the
// queue there.
func TestLabelledWaitersMoveByFreeLabelCapacity(t *testing.T) {
	on := func(m subcluster.Status, used int64, queues ...creel.QueuePath) subcluster.Status {
		m.Load.Labels = subcluster.Labels{Known: true, Partitions: []subcluster.Partition{{
			Label: "gpu", Total: creel.NewResource(100<<10, 100), Used: creel.NewResource(used<<10, used),
		}}}
		for _, q := range queues {
			m.Load.Queues = append(m.Load.Queues, subcluster.QueueLoad{Queue: q, Label: "gpu"})
		}
		return m
	}
	in := &MoveInput{
		View: subcluster.NewView(time.Time{}, []subcluster.Status{
			on(moveMember("sc-1", subcluster.StateActive, 10, 10, 5, "root.a"), 100, "root.a"),
			moveMember("sc-2", subcluster.StateActive, 0, 0, 0, "root.a"), // idle, and without such nodes
			on(moveMember("sc-3", subcluster.StateActive, 100, 10, 0, "root.a"), 50, "root.a"),
			on(moveMember("sc-4", subcluster.StateActive, 0, 0, 0, "root.a"), 0), // its queue may not use them
		}, nil),
		Now: time.Unix(1000, 0), Waiting: waitingIn("sc-1", "root.a", 5),
	}
	for i := range in.Waiting {
		in.Waiting[i].Label = "gpu"
	}
	terms := usualTerms
	terms.Loaded, terms.QueuePercent = true, 100
	chosen, notes := ChooseMoves(in, terms)
	if len(chosen) != 5 || chosen[0].To != "sc-3" ||
		chosen[0].Why != "100 % of sc-1 on nodes of label gpu is in use and it waits there, 50 % of sc-3" {
		t.Fatalf("%+v %q", chosen, notes)
	}
	in.View.Members[2].Load.Labels.Partitions[0].Used = creel.NewResource(90<<10, 90)
	if chosen, notes := ChooseMoves(in, terms); len(chosen) != 0 ||
		!strings.Contains(fmt.Sprint(notes), "of sc-1 on nodes of label gpu stay:") {
		t.Errorf("within the dead band: %+v %q", chosen, notes)
	}
	in.Drained = map[creel.SubclusterID]string{"sc-1": "sc-1 is drained", "sc-3": "sc-3 is drained"}
	if chosen, notes := ChooseMoves(in, terms); len(chosen) != 0 ||
		!strings.Contains(fmt.Sprint(notes), "no other member that takes applications has that queue there") {
		t.Errorf("nobody has such nodes for the queue: %+v %q", chosen, notes)
	}
}
