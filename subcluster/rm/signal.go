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
	if m.apps.container(s.Container) == nil && !m.recovery.mayComeBack(s.Container) {
		return refusal(creel.ErrContainerNotFound, signalledUnknown, s.Container)
	}
	switch waiting := m.signals.waiting[id]; {
	case slices.Contains(waiting, s):
		return nil // it is already stored
	case len(waiting) >= mostSignals:
		return &creel.Error{
			Kind: creel.ErrBusy, What: "too many signals wait for nodes of application " + id.String(),
			Why: "its nodes have not received the earlier ones", Try: "try again after their next heartbeats",
			RetryAfter: time.Second,
		}
	}
	m.signals.waiting[id] = append(m.signals.waiting[id], s)
	m.apps.save(m.apps.byID[id], func() {
		if c := m.apps.container(s.Container); c != nil && slices.Contains(m.signals.waiting[id], s) {
			c.node.signals = append(c.node.signals, s)
		}
	})
	return nil
}

// mayComeBack reports whether a node that has not registered since a restart, and has not expired, may still run a
// container of this ResourceManager. Applications may also have containers of other members.
func (x *recovery) mayComeBack(id creel.ContainerID) bool {
	m := x.m
	givenUp := m.cfg.NodeExpiry > 0 && m.now >= x.at+int64(m.cfg.NodeExpiry)
	return !givenUp && id.Epoch() >= m.cfg.FirstEpoch && x.mayRun(id) != nil
}

// taken runs when a node's heartbeat proves that it received the previous answer.
func (w *signalStore) taken(n *node) {
	if n.answer == nil {
		return
	}
	for _, s := range n.answer.Signals {
		w.drop(s.Container.Attempt.Application, func(other Signal) bool { return other == s })
	}
}

// again runs when a node registers again: it may not have received the signals for its containers.
func (w *signalStore) again(n *node) {
	if len(w.waiting) == 0 {
		return
	}
	for _, c := range n.live {
		if c == nil || c.node != n {
			continue
		}
		id := c.id()
		for _, s := range w.waiting[id.Attempt.Application] {
			if s.Container == id {
				n.signals = append(n.signals, s)
			}
		}
	}
}

// containerOver drops an ended container's signals.
func (w *signalStore) containerOver(id creel.ContainerID) {
	if len(w.waiting) > 0 {
		w.drop(id.Attempt.Application, func(s Signal) bool { return s.Container == id })
	}
}

func (w *signalStore) drop(id creel.ApplicationID, drop func(Signal) bool) {
	m := w.m
	waiting := w.waiting[id]
	kept := slices.DeleteFunc(slices.Clone(waiting), drop)
	if len(kept) == len(waiting) {
		return
	}
	if w.waiting[id] = kept; len(kept) == 0 {
		delete(w.waiting, id)
	}
	if a := m.apps.byID[id]; a != nil && !a.state.ended() {
		m.apps.save(a, func() {})
	}
}
