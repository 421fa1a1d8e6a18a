// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// signalled is a durable machine with one container running on a node.
func signalled(t *testing.T) (w *world, node creel.NodeID, s Signal) {
	w = newWorld(t, func(c *Config) { c.Volatile = false })
	node = w.node("n1", 8192, 8, "")
	am := w.unmanaged("ann", "default")
	s = Signal{Container: w.asks(am, ask(1, "*", 1024, 1, 1)).Granted[0].ID, Command: 2}
	w.heartbeat(node, ContainerStatus{ID: s.Container, State: creel.ContainerRunning})
	return w, node, s
}

// savedRecord returns the journal's record of the application.
func (w *world) savedRecord() (r AppRecord) {
	for _, a := range w.got {
		if save, ok := a.(SaveApp); ok {
			r = save.Record
		}
	}
	return r
}

func (w *world) signal(s Signal) {
	w.t.Helper()
	if err := w.m.Signal(w.now, s); err != nil {
		w.t.Fatal(err)
	}
	w.pump()
}

// after restarts the ResourceManager from its journal; its node registers with these containers.
func (w *world) after(node creel.NodeID, running ...creel.ContainerID) *world {
	w.t.Helper()
	n := newWorld(w.t, func(c *Config) { c.Volatile, c.Epoch = false, 1 })
	r := w.savedRecord()
	r.Attempts = []AttemptRecord{{
		ID: creel.AttemptID{Application: r.Submission.ID, Attempt: 1}, Started: w.now, ExitStatus: creel.ExitInvalid,
	}}
	if err := n.m.Recover(n.now, &Recover{Apps: []AppRecord{r}}); err != nil {
		w.t.Fatal(err)
	}
	n.pump()
	if len(running) > 0 {
		n.registers(node, creel.ContainerRunning, running...)
	}
	return n
}

func (w *world) registers(node creel.NodeID, state creel.ContainerState, containers ...creel.ContainerID) {
	w.t.Helper()
	r := &RegisterNode{ID: node, Resource: creel.NewResource(8192, 8)}
	for _, id := range containers {
		r.Containers = append(r.Containers, NodeContainer{ID: id, Resource: creel.NewResource(1024, 1), State: state})
	}
	if _, err := w.m.RegisterNode(w.now, r); err != nil {
		w.t.Fatal(err)
	}
	w.responses[node] = 0
	w.pump()
	w.audit()
}

// checkSignals sends a heartbeat of the node, and checks the signals in the response.
func (w *world) checkSignals(node creel.NodeID, want ...Signal) {
	w.t.Helper()
	got := w.heartbeat(node).Signals
	if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
		w.t.Errorf("the node is told of %v, want %v", got, want)
	}
}

func TestSignalIsStoredUntilDelivered(t *testing.T) {
	w, node, s := signalled(t)
	if err := w.m.Signal(w.now, s); err != nil {
		t.Fatal(err)
	}
	if got := w.m.NodeHeartbeat(w.now, &NodeReport{ID: node, ResponseID: w.responses[node]}); len(got.Signals) > 0 {
		t.Error("the node is told before the signal is written down")
	} else {
		w.responses[node] = got.ResponseID
	}
	w.pump()
	w.checkSignals(node, s)
	if len(w.savedRecord().Signals) != 1 {
		t.Error("it is forgotten before the node says that it has the answer")
	}
	w.checkSignals(node)
	if len(w.savedRecord().Signals) != 0 || len(w.m.signals.waiting) != 0 {
		t.Errorf("the node has it, and %v are kept", w.savedRecord().Signals)
	}
}

func TestASignalSurvivesARestart(t *testing.T) {
	w, node, s := signalled(t)
	w.signal(s)
	w = w.after(node, s.Container)
	w.checkSignals(node, s)
	w.checkSignals(node)
	if len(w.savedRecord().Signals) != 0 {
		t.Errorf("%v are kept", w.savedRecord().Signals)
	}
	// It may have been in an answer that the node did not get: then the node has it twice.
	w, node, s = signalled(t)
	w.signal(s)
	w.checkSignals(node, s)
	w.after(node, s.Container).checkSignals(node, s)
}

// A restarted ResourceManager does not know a container yet: its signal waits for the node, which may register only
// after the next restart.
func TestSignalWaitsForAbsentNode(t *testing.T) {
	w, node, s := signalled(t)
	w = w.after(node)
	w.signal(s)
	w = w.after(node)
	w.registers(node, creel.ContainerRunning, s.Container)
	w.checkSignals(node, s)

	// Its container has ended meanwhile: nothing is left to do.
	w, node, s = signalled(t)
	w = w.after(node)
	w.signal(s)
	w.registers(node, creel.ContainerComplete, s.Container)
	w.checkSignals(node)
	if len(w.savedRecord().Signals) != 0 {
		t.Errorf("%v are kept of a container that has ended", w.savedRecord().Signals)
	}
	if err := w.m.Signal(w.now, s); !errors.Is(err, creel.ErrContainerNotFound) {
		t.Errorf("a signal to it: %v", err)
	}

	// Nor is there when nodes that are not back are given up.
	w, node, s = signalled(t)
	w = w.after(node)
	w.now = w.now.Add(w.m.cfg.NodeExpiry + time.Second)
	if err := w.m.Signal(w.now, s); !errors.Is(err, creel.ErrContainerNotFound) {
		t.Errorf("long after the restart: %v", err)
	}
}

// An application's container in another member, of an epoch of that one's, is not waited for.
func TestASignalForAnotherMembersContainerIsRefused(t *testing.T) {
	w, node, s := signalled(t)
	w = w.after(node)
	w.m.cfg.Epoch, w.m.cfg.FirstEpoch = 2001, 2000
	for epoch, want := range map[int64]error{1005: creel.ErrContainerNotFound, 2000: nil, 2001: creel.ErrContainerNotFound} {
		s.Container = creel.NewContainerID(s.Container.Attempt, epoch, 7)
		if err := w.m.Signal(w.now, s); !errors.Is(err, want) {
			t.Errorf("of epoch %d: %v, want %v", epoch, err, want)
		}
	}
}

func TestReregisteredNodeGetsSignalAgain(t *testing.T) {
	w, node, s := signalled(t)
	w.signal(s)
	w.checkSignals(node, s)
	w.registers(node, creel.ContainerRunning, s.Container)
	w.checkSignals(node, s)
	w.checkSignals(node)
}

func TestSignalsThatWaitAreBounded(t *testing.T) {
	w, _, s := signalled(t)
	for i := range int32(mostSignals) {
		w.signal(Signal{s.Container, i})
	}
	w.signal(s) // again
	if err := w.m.Signal(w.now, Signal{s.Container, mostSignals}); !errors.Is(err, creel.ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	w.release(s.Container.Attempt, s.Container)
	if len(w.m.signals.waiting) != 0 || len(w.savedRecord().Signals) != 0 {
		t.Errorf("the container is over and %d wait", len(w.savedRecord().Signals))
	}
}
