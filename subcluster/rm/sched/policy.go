// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// policy is what tells the schedulers of Hadoop apart: what queues are promised,
// which limits there are, how long an ask waits for its place. It is one value
// for the whole tree, chosen when that is built; nobody else asks which scheduler
// it is (policy_test.go). policy_capacity.go and policy_fair.go are the two.
type policy interface {
	// Queues.
	defaultOrder(q *Queue) queues.Policy // of a queue that names none
	inheritsOrder() bool                 // such a queue has that of its parent
	amShare() float64                    // share of a queue that AMs may use by default
	// size sets guaranteed, max and their fractions: its parent is sized, and the root has all there is.
	size(s *Scheduler, q *Queue)
	maxApps(q *Queue, all int) int // a leaf's part of the bound on all applications
	maxUserApps(q *Queue) int      // what one user may have of leafState.maxApps

	// Queues made on demand, and reloads.
	makesUndeclared() bool // a submission may make its queue though no placement rule says so
	template(
		above *queues.Queue,
		levels int,
	) *queues.AutoCreate // the rule for making so many levels; nil: not to be made
	keepsMade(q *queues.Queue) bool // queues made on demand may stay below q
	removesOnlyStopped() bool       // a leaf must be stopped before it may go
	// guarantees reports whether queues are guaranteed parts of the cluster, in whose place a plan's
	// capacities can be.
	guarantees() bool
	knowsLabels() bool      // nodes' labels make partitions
	keepsConstraints() bool // scheduling requests may wait for ever: Hadoop's handler named scheduler

	// Limits.
	userAdmits(s *Scheduler, u *user) bool               // the user may get one container more
	userLimit(s *Scheduler, u *user) (amounts.Vec, bool) // what the user may use now; false: there is no limit
	// amLimit is what AMs of a leaf may use together, and those of one user; nil: of
	// one whose weight is 1.
	amLimit(s *Scheduler, q *Queue, u *user, set shareSet) (all, one amounts.Vec)
	oneAMAlways() bool  // a leaf may run one AM, whatever they may use together
	holdsTheLine() bool // asks may not pass one that waits for a queue's maximum; see blocker.go

	// Preemption.
	shortfall(r *round) // sets who is in need and who has too much
	within() bool       // it may also be between applications of one leaf

	// Asks.
	priority(p int32) int32              // of applications, for the one asked for
	patience(s *Scheduler, w *Ask) int64 // opportunities to pass up before the ask may go beyond its level

	// Reports.
	byPartition() bool                            // use is told by partition
	promise(s *Scheduler, q *Queue) float64       // the queue's part of the cluster
	measure(s *Scheduler, v *amounts.Vec) float64 // the part of the cluster that an amount is, told
	report(s *Scheduler, q *Queue, v *QueueView)
	// countedAs tells whether a leaf's view counts an application among those that run, or that wait.
	countedAs(a *App) (running, pending bool)
}

// policyOf chooses it.
func policyOf(spec *queues.Spec) policy {
	if spec.Scheduler == queues.FairScheduler {
		return &fairPolicy{spec}
	}
	return &capacityPolicy{spec}
}

// userRefusal is userAdmits for all at once: whom a limit stops, and where.
func (s *Scheduler) userRefusal(a *App) verdict {
	if s.policy.userAdmits(s, a.user) {
		return verdict{}
	}
	return verdict{LimitUser, a.queue}
}

// MakesUndeclared reports whether a submission may make its queue though no
// placement rule says so.
func (s *Scheduler) MakesUndeclared() bool { return s.policy.makesUndeclared() }

// KnowsLabels reports whether nodes' labels make partitions: FairScheduler has none.
func (s *Scheduler) KnowsLabels() bool { return s.policy.knowsLabels() }

// ByPartition reports whether applications' use is told by partition.
func (s *Scheduler) ByPartition() bool { return s.policy.byPartition() }

// KeepsConstraints reports whether Hadoop's handler named scheduler serves scheduling
// requests: under FairScheduler only its placement-processor does.
func (s *Scheduler) KeepsConstraints() bool { return s.policy.keepsConstraints() }
