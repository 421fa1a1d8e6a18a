// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// mostSignals limits the signals of one application that wait for their nodes.
const mostSignals = 100

// Signal makes a container's node send it a signal, after its next heartbeat. The signal is saved with the
// application until the node has received it, so that it survives restarts of the ResourceManager and of the node. A
// container that a restarted ResourceManager does not know yet may still run until its unregistered node expires: its
// signal waits until then.
func (m *Machine) Signal(now time.Time, s Signal) error {
	m.at(now)
	id := s.Container.Attempt.Application
	if m.container(s.Container) == nil && !m.mayComeBack(s.Container) {
		return &creel.Error{
			Kind: creel.ErrContainerNotFound,
			What: "Container: " + s.Container.String() + " doesn't exist",
		}
	}
	switch waiting := m.signals[id]; {
	case slices.Contains(waiting, s):
		return nil // it is already stored
	case len(waiting) >= mostSignals:
		return &creel.Error{
			Kind: creel.ErrBusy, What: "too many signals wait for nodes of application " + id.String(),
			Why: "its nodes have not received the earlier ones", Try: "try again after their next heartbeats",
			RetryAfter: time.Second,
		}
	}
	m.signals[id] = append(m.signals[id], s)
	m.saveApp(m.apps[id], func() {
		if c := m.container(s.Container); c != nil && slices.Contains(m.signals[id], s) {
			c.node.signals = append(c.node.signals, s)
		}
	})
	return nil
}

// mayComeBack reports whether a node that has not registered since a restart, and has not expired, may still run a
// container of this ResourceManager. Applications may also have containers of other members.
func (m *Machine) mayComeBack(id creel.ContainerID) bool {
	givenUp := m.cfg.NodeExpiry > 0 && m.now >= m.recovered+int64(m.cfg.NodeExpiry)
	return !givenUp && id.Epoch() >= m.cfg.FirstEpoch && m.mayRun(id) != nil
}

// signalsTaken runs when a node's heartbeat proves that it received the previous answer.
func (m *Machine) signalsTaken(n *node) {
	if n.answer == nil {
		return
	}
	for _, s := range n.answer.Signals {
		m.dropSignals(s.Container.Attempt.Application, func(other Signal) bool { return other == s })
	}
}

// signalsAgain runs when a node registers again: it may not have received the signals for its containers.
func (m *Machine) signalsAgain(n *node) {
	if len(m.signals) == 0 {
		return
	}
	for _, c := range n.live {
		if c == nil || c.node != n {
			continue
		}
		id := c.id()
		for _, s := range m.signals[id.Attempt.Application] {
			if s.Container == id {
				n.signals = append(n.signals, s)
			}
		}
	}
}

// containerOver drops an ended container's signals.
func (m *Machine) containerOver(id creel.ContainerID) {
	if len(m.signals) > 0 {
		m.dropSignals(id.Attempt.Application, func(s Signal) bool { return s.Container == id })
	}
}

func (m *Machine) dropSignals(id creel.ApplicationID, drop func(Signal) bool) {
	waiting := m.signals[id]
	kept := slices.DeleteFunc(slices.Clone(waiting), drop)
	if len(kept) == len(waiting) {
		return
	}
	if m.signals[id] = kept; len(kept) == 0 {
		delete(m.signals, id)
	}
	if a := m.apps[id]; a != nil && !a.state.ended() {
		m.saveApp(a, func() {})
	}
}
