// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
)

// Allocation is an AllocateRequest with the attempt that sends it, as an event.
type Allocation struct {
	Attempt creel.AttemptID
	Request AllocateRequest
}

func (e *Submission) apply(m *Machine, now time.Time) (any, error) { return nil, m.Submit(now, e) }
func (e Kill) apply(m *Machine, now time.Time) (any, error)        { return m.Kill(now, e.App, e.Diagnostics) }
func (e FailAttempt) apply(m *Machine, now time.Time) (any, error) {
	return nil, m.FailAttempt(now, e.Attempt)
}
func (e Move) apply(m *Machine, now time.Time) (any, error) { return nil, m.Move(now, e.App, e.Queue) }
func (e SetPriority) apply(m *Machine, now time.Time) (any, error) {
	return m.SetPriority(now, e.App, e.Priority)
}
func (e SetLifetime) apply(m *Machine, now time.Time) (any, error) {
	return nil, m.SetLifetime(now, e.App, e.Deadline)
}
func (e Signal) apply(m *Machine, now time.Time) (any, error) { return nil, m.Signal(now, e) }
func (e *RegisterMaster) apply(m *Machine, now time.Time) (any, error) {
	return m.RegisterMaster(now, e)
}
func (e *Allocation) apply(m *Machine, now time.Time) (any, error) {
	return m.Allocate(now, e.Attempt, &e.Request)
}
func (e *FinishMaster) apply(m *Machine, now time.Time) (any, error) { return m.FinishMaster(now, e) }
func (e *RegisterNode) apply(m *Machine, now time.Time) (any, error) { return m.RegisterNode(now, e) }
func (e *Decommission) apply(m *Machine, now time.Time) (any, error) {
	return nil, m.Decommission(now, e)
}
func (e Recommission) apply(m *Machine, now time.Time) (any, error) {
	return nil, m.Recommission(now, e.ID)
}
func (e SetNodeResource) apply(m *Machine, now time.Time) (any, error) {
	return nil, m.SetNodeResource(now, e.ID, e.Resource)
}
func (e *ReloadQueues) apply(m *Machine, now time.Time) (any, error) {
	return nil, m.ReloadQueues(now, e.Queues)
}
func (e SetQueueState) apply(m *Machine, now time.Time) (any, error) {
	return nil, m.SetQueueState(now, e.Queue, e.State)
}
func (e *Recover) apply(m *Machine, now time.Time) (any, error) { return nil, m.Recover(e) }

func (e *NodeReport) apply(m *Machine, now time.Time) (any, error) {
	return m.NodeHeartbeat(now, e), nil
}

func (e MasterLaunched) apply(m *Machine, now time.Time) (any, error) {
	m.MasterLaunched(now, e.Attempt)
	return nil, nil
}

func (e MasterLaunchFailed) apply(m *Machine, now time.Time) (any, error) {
	m.MasterLaunchFailed(now, e.Attempt, e.Diagnostics)
	return nil, nil
}

func (e Saved) apply(m *Machine, now time.Time) (any, error) {
	m.Saved(now, e.Seq)
	return nil, nil
}

func (e UnregisterNode) apply(m *Machine, now time.Time) (any, error) {
	m.UnregisterNode(now, e.ID)
	return nil, nil
}

func (e ForgetNMTokens) apply(m *Machine, now time.Time) (any, error) {
	m.ForgetNMTokens(now)
	return nil, nil
}

func (e Tick) apply(m *Machine, now time.Time) (any, error) {
	m.Tick(now)
	return nil, nil
}

// ForgetNMTokens makes every master get new NM tokens: a key was rolled.
func (m *Machine) ForgetNMTokens(now time.Time) {
	m.at(now)
	m.tokenEpoch++
}
