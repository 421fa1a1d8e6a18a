// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"

	"github.com/creelrm/creel"
)

// A node reports a finished container in every heartbeat until it may forget it. Until the AM has received the
// completion, only the node knows it after a restart, so the node must not forget it.
func TestNodeForgetsAcknowledgedCompletion(t *testing.T) {
	w := newWorld(t, nil)
	n := w.node("n1", 8192, 8, "")
	am := w.unmanaged("ann", "default")
	id := w.asks(am, ask(1, "*", 1024, 1, 1)).Granted[0].ID
	ended := ContainerStatus{ID: id, State: creel.ContainerComplete}
	heartbeat := func(want bool, when string) {
		t.Helper()
		if got := slices.Contains(w.heartbeat(n, ended).Forget, id); got != want {
			t.Errorf("%s: told to forget %v, want %v", when, got, want)
		}
	}
	heartbeat(false, "the first time")
	heartbeat(false, "before its AM was told")
	if got := w.allocate(am, AllocateRequest{}).Completed; len(got) != 1 || got[0].ID != id {
		t.Fatalf("the AM is told of %v", got)
	}
	heartbeat(false, "told, but that may have been lost")
	w.allocate(am, AllocateRequest{})
	heartbeat(true, "the AM speaks again: it has it")
	w.audit()
}

// A node whose heartbeat came late must register again. The AM still has not received the completion that the node
// reports once more: after a restart of the ResourceManager only the node knows it.
func TestReregisteredNodeKeepsPendingCompletion(t *testing.T) {
	w := newWorld(t, nil)
	n := w.node("n1", 8192, 8, "")
	am := w.unmanaged("ann", "default")
	granted := w.asks(am, ask(1, "*", 1024, 1, 1)).Granted[0]
	w.heartbeat(n, ContainerStatus{ID: granted.ID, State: creel.ContainerComplete})
	if _, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: n, Resource: creel.NewResource(8192, 8), Version: "3.4.2",
		Containers: []NodeContainer{
			{ID: granted.ID, State: creel.ContainerComplete, Resource: granted.Resource, Priority: 1},
		},
	}); err != nil {
		t.Fatal(err)
	}
	w.responses[n] = 0 // as registered
	if got := w.heartbeat(n).Forget; slices.Contains(got, granted.ID) {
		t.Error("the node forgets a completion that nobody has been told of")
	}
	w.allocate(am, AllocateRequest{})
	w.allocate(am, AllocateRequest{})
	ended := ContainerStatus{ID: granted.ID, State: creel.ContainerComplete} // it goes on telling until then
	if got := w.heartbeat(n, ended).Forget; !slices.Contains(got, granted.ID) {
		t.Errorf("the AM has it, and the node is told to forget %v", got)
	}
	w.audit()
}

// A registration that its proxy sent twice may arrive again after the first allocate, and its answer gets lost. The
// node tokens in it are sent again.
func TestRepeatedRegistrationTokensComeWithGrants(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 8192, 8, "")
	am := w.submit("ann", "default", func(s *Submission) { s.Unmanaged, s.KeepContainers = true, true })
	w.register(am)
	if got := w.asks(am, ask(1, "*", 1024, 1, 1)); len(got.Granted) != 1 || len(got.NMTokens) != 1 {
		t.Fatalf("granted %v with tokens for %v", got.Granted, got.NMTokens)
	}
	if late := w.register(am); len(late.NMTokens) != 1 {
		t.Errorf("who registers again gets tokens for %v", late.NMTokens)
	}
	for _, want := range []int{1, 0} {
		if got := w.asks(am, ask(1, "*", 1024, 1, 1)); len(got.Granted) != 1 || len(got.NMTokens) != want {
			t.Errorf("granted %v with tokens for %v, want %d", got.Granted, got.NMTokens, want)
		}
	}
	w.audit()
}

// A UAM that registers again, after its proxy died, never acknowledged its last answer: the completions in it are
// sent again.
func TestReregisteredUnmanagedAMGetsDataAgain(t *testing.T) {
	w := newWorld(t, nil)
	n := w.node("n1", 8192, 8, "")
	am := w.submit("ann", "default", func(s *Submission) { s.Unmanaged, s.KeepContainers = true, true })
	w.register(am)
	granted := w.asks(am, ask(1, "*", 1024, 1, 2)).Granted
	w.heartbeat(n, ContainerStatus{ID: granted[0].ID, State: creel.ContainerComplete})
	if got := w.allocate(am, AllocateRequest{}).Completed; len(got) != 1 {
		t.Fatalf("told of %v", got)
	}
	if kept := w.register(am).Previous; len(kept) != 1 || kept[0].ID != granted[1].ID {
		t.Errorf("kept %v, want %s", kept, granted[1].ID)
	}
	if got := w.allocate(am, AllocateRequest{}).Completed; len(got) != 1 || got[0].ID != granted[0].ID {
		t.Errorf("told again of %v, want %s", got, granted[0].ID)
	}
	if got := w.allocate(am, AllocateRequest{}).Completed; len(got) != 0 {
		t.Errorf("told a third time of %v", got)
	}
	w.audit()
}

// A call that a UAM's proxy sent before it died may remain in a socket until the proxy's successor has registered and
// has reached the same response number. It must not count as the successor's call, whose asks would then be skipped
// as a repeat.
func TestCallBeforeRegistrationIsRecognized(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	am := w.submit("ann", "default", func(s *Submission) { s.Unmanaged, s.KeepContainers = true, true })
	w.register(am)
	for range 5 {
		w.allocate(am, AllocateRequest{})
	}
	const late = 5 // was never served
	w.register(am)
	call := func(id int32, asks ...Ask) (*Answer, error) {
		return w.m.Allocate(w.now, am, &AllocateRequest{ResponseID: id, Asks: asks})
	}
	answer, err := call(0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := call(0); err != nil || !again.Duplicate {
		t.Errorf("the repeat of the first call gives %+v, %v", again, err)
	}
	for range 10 {
		last := answer.ResponseID
		for old := int32(1); old <= late; old++ {
			if got, err := call(old); err == nil {
				t.Fatalf("call %d of the proxy before is answered with %d", old, got.ResponseID)
			}
		}
		if answer, err = call(last, ask(1, "*", 1024, 1, 1)); err != nil || answer.Duplicate {
			t.Fatalf("call %d gives %+v, %v", last, answer, err)
		}
		if len(answer.Granted) != 1 {
			t.Errorf("call %d was granted %v", last, answer.Granted)
		}
		if again, err := call(last); err != nil || !again.Duplicate {
			t.Errorf("the repeat of call %d gives %+v, %v", last, again, err)
		}
	}
	w.audit()
}

// The saved record of an unregistered application whose AM's container still runs shows the end, also when another
// change writes it again.
func TestAnEndThatIsDurableStaysSo(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Volatile = false })
	node := w.node("n1", 8192, 8, "")
	am := w.submit("ann", "default", nil)
	w.heartbeat(node)
	w.pump()
	w.register(am)
	if _, err := w.m.FinishAM(w.now, &FinishAM{Attempt: am, Status: creel.FinalSucceeded}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if s := w.m.apps.byID[am.Application].state; s != appFinishing || w.savedRecord().State != creel.AppFinished {
		t.Fatalf("it has unregistered, is %v, and kept is %v", s, w.savedRecord().State)
	}
	if _, err := w.m.SetPriority(w.now, am.Application, 5); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if s := w.savedRecord().State; s != creel.AppFinished {
		t.Errorf("its priority was changed, and kept is %v", s)
	}
}

// Unfetched completions of an application that is over are dropped, not retained until the application is forgotten.
// Its nodes may forget them, including nodes that report again.
func TestUnfetchedCompletionsEndWithApplication(t *testing.T) {
	w := newWorld(t, nil)
	n := w.node("n1", 8192, 8, "")
	am := w.submit("ann", "default", func(s *Submission) { s.Unmanaged, s.KeepContainers = true, true })
	w.register(am)
	id := w.asks(am, ask(1, "*", 1024, 1, 1)).Granted[0].ID
	ended := ContainerStatus{ID: id, State: creel.ContainerComplete}
	if got := w.heartbeat(n, ended).Forget; slices.Contains(got, id) {
		t.Fatalf("before its AM was told the node is to forget %v", got)
	}
	if _, err := w.m.Kill(w.now, am.Application, "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if a := w.m.apps.byID[am.Application]; a.state != appKilled || a.attempts[0].done != nil {
		t.Errorf("the application is %s and keeps %v", a.state, a.attempts[0].done)
	}
	for _, when := range []string{"at once", "when it tells again"} {
		if got := w.heartbeat(n, ended).Forget; !slices.Contains(got, id) {
			t.Errorf("%s the node is to forget %v", when, got)
		}
	}
	w.audit()
}

// Unfetched completions of one attempt pass to the next one alone. When that has received them, the node may forget
// them, however often it reports.
func TestForwardedCompletionsAreDropped(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxAttempts = 2 })
	n := w.node("n1", 8192, 8, "")
	first := w.submit("ann", "default", func(s *Submission) { s.KeepContainers = true })
	w.register(first)
	id := w.asks(first, ask(1, "*", 1024, 1, 1)).Granted[0].ID
	ended := ContainerStatus{ID: id, State: creel.ContainerComplete}
	am := creel.NewContainerID(first, 0, 1)
	w.heartbeat(n, ended, ContainerStatus{ID: am, State: creel.ContainerComplete, ExitStatus: 1})
	w.heartbeat(n, ended)
	second := creel.AttemptID{Application: first.Application, Attempt: 2}
	w.register(second)
	if got := w.allocate(second, AllocateRequest{}).Completed; len(got) != 1 || got[0].ID != id {
		t.Fatalf("the second attempt is told of %v", got)
	}
	w.allocate(second, AllocateRequest{})
	for _, when := range []string{"at once", "when it tells again"} {
		if got := w.heartbeat(n, ended).Forget; !slices.Contains(got, id) {
			t.Errorf("%s the node is to forget %v", when, got)
		}
	}
	w.audit()
}
