// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// These are capacities of queues by the federation's plan.
type (
	Capacities      = sched.Capacities
	Capacity        = sched.Capacity
	PlannedView     = explain.PlannedView
	ConfiguredQueue = sched.ConfiguredQueue
)

// SetCapacities sets queues' capacities by the federation's plan, until the plan's lease ends. They take precedence
// over other queues' excess. Containers above a capacity keep running; only preemption ends them. An empty plan
// restores the configured capacities.
func (m *Machine) SetCapacities(now time.Time, c Capacities) error {
	m.at(now)
	err := m.sched.SetCapacities(c)
	m.settle()
	return err
}

// ConfiguredQueues returns the configured capacity of each queue on the nodes of a label; nil for an unknown label,
// and under FairScheduler, which plans do not cover.
func (r Reader) ConfiguredQueues(label string) []ConfiguredQueue {
	return r.m.sched.Configured(label)
}

// whyPlanned returns, for a waiting application, a text about its queue's planned capacity here, which begins with a
// space; "" if the configured capacity applies.
func (r Reader) whyPlanned(a *app) string {
	if _, waiting := a.Pending(); waiting == 0 || !a.InQueue() {
		return ""
	}
	p, configured := a.App.Planned()
	if p == nil || math.Abs(p.Share-configured) < 0.005 {
		return ""
	}
	of := "this subcluster"
	if p.Label != "" {
		of = "its nodes of label " + p.Label
	}
	return fmt.Sprintf(" Plan %d of the federation entitles queue %s to %.1f%% of %s, %s, until %s; "+
		"its configured part is %.1f%%.", p.Version, a.Queue().Path(), 100*p.Share, of,
		p.Amount, p.Until.UTC().Format(time.TimeOnly), 100*configured)
}
