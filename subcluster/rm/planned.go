// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched"
)

// Capacities of queues by the federation's plan.
type (
	Capacities      = sched.Capacities
	Capacity        = sched.Capacity
	PlannedView     = sched.PlannedView
	ConfiguredQueue = sched.ConfiguredQueue
)

// SetCapacities has queues get what the federation's plan gives them here before others
// get more than theirs, until its lease is over; what runs above it goes on running, and
// is taken back only by preemption. Nothing in it: the configured capacities hold.
func (m *Machine) SetCapacities(now time.Time, c Capacities) error {
	m.at(now)
	err := m.sched.SetCapacities(c)
	m.settle()
	return err
}

// ConfiguredQueues is what the configuration gives each queue on the nodes of a label; nil where
// there is no such label, and under FairScheduler, whose queues no plan gives anything.
func (m *Machine) ConfiguredQueues(label string) []ConfiguredQueue {
	return m.sched.Configured(label)
}

// whyPlanned tells an application that waits what the federation's plan has its queue get
// here; "" where that is what is configured, else it begins with a space.
func (m *Machine) whyPlanned(a *app) string {
	if _, waiting := a.Pending(); waiting == 0 || !a.InQueue() {
		return ""
	}
	p, configured := m.sched.PlannedFor(&a.App)
	if p == nil || math.Abs(p.Share-configured) < 0.005 {
		return ""
	}
	of := "this subcluster"
	if p.Label != "" {
		of = "its nodes of label " + p.Label
	}
	return fmt.Sprintf(" By plan %d of the federation queue %s gets %.1f%% of %s, %s, before others get "+
		"more than theirs, until %s; its configuration says %.1f%%.", p.Version, a.Queue().Path(), 100*p.Share, of,
		p.Amount, p.Until.UTC().Format(time.TimeOnly), 100*configured)
}
