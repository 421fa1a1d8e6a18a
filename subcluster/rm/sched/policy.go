// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// policy has the differences between Hadoop's schedulers. The whole tree has one policy, chosen when the tree is built;
// no other code distinguishes schedulers (policy_test.go). policy_capacity.go and policy_fair.go implement its parts.
type policy struct {
	traits
	divider
	planter
	limiter
	preempter
	server
	reporter
}

// traits are the differences that need no decision.
type traits struct {
	inheritsOrder      bool    // a queue that names no order takes its parent's
	amShare            float64 // default share of a queue that AMs may use
	makesUndeclared    bool    // a submission may create its queue without a placement rule
	removesOnlyStopped bool    // a leaf must be stopped before its removal
	guarantees         bool    // queues have guaranteed parts of the cluster, which a plan's capacities can replace
	knowsLabels        bool    // node labels make partitions
	keepsConstraints   bool    // scheduling requests may wait without limit: Hadoop's handler named scheduler
	oneAMAlways        bool    // a leaf may run one AM, regardless of the limit of all AMs
	holdsTheLine       bool    // asks may not pass an ask that waits for a queue's maximum; see retries.go
	within             bool    // preemption may also be between applications of one leaf
	byPartition        bool    // use is reported by partition
	listsNeedACLs      bool    // queues' lists limit submissions with yarn.acl.enable only
}

// divider divides the cluster among the queues.
type divider interface {
	// size sets guaranteed, max and their fractions. The parent is sized before; the root has everything.
	size(p *partition, q *Queue)
	promise(p *partition, q *Queue) float64       // the queue's part of the cluster
	measure(p *partition, v *amounts.Vec) float64 // an amount as a reported part of the cluster
}

// planter decides about the shape of the tree: orders, and queues created on demand.
type planter interface {
	defaultOrder(q *Queue) queues.Policy // for a queue that names none
	// template is the rule for creating so many levels; nil: not permitted.
	template(above *queues.Queue, levels int) *queues.AutoCreate
	keepsMade(q *queues.Queue) bool // queues created on demand may stay below q
}

// limiter has the limits of users, of AMs and of numbers of applications.
type limiter interface {
	userAdmits(p *partition, u *user) bool               // the user may get one more container
	userLimit(p *partition, u *user) (amounts.Vec, bool) // the user's current limit; false: no limit
	// amLimit returns the limits of all AMs of a leaf, and of one user's AMs; if u is nil, of a user with weight 1.
	amLimit(p *partition, q *Queue, u *user, set shareSet) (all, one amounts.Vec)
	maxApps(q *Queue, all int) int // a leaf's part of the limit on all applications
	maxUserApps(q *Queue) int      // one user's part of leafState.maxApps
}

// preempter compares the queues' shares with their use.
type preempter interface {
	shortfall(r *round) // computes needs and excess
}

// server orders applications and relaxes the places of their asks.
type server interface {
	priority(p int32) int32              // of an application that requests this one
	patience(p *partition, w *Ask) int64 // opportunities to skip before the ask may use the next level
}

// reporter completes views of queues.
type reporter interface {
	report(p *partition, q *Queue, v *explain.QueueView)
	// countedAs reports whether a leaf's view counts an application as running or as pending.
	countedAs(a *App) (running, pending bool)
}

// policyOf chooses the policy.
func policyOf(spec *queues.Spec) policy {
	if spec.Scheduler == queues.FairScheduler {
		p := &fairPolicy{spec}
		return policy{fairTraits, p, p, p, p, p, p}
	}
	p := &capacityPolicy{spec}
	return policy{capacityTraits, p, p, p, p, p, p}
}

// Policy is the part of the policy that the owner asks for.
type Policy struct{ of *policy }

// Policy returns the differences between Hadoop's schedulers that matter to the owner.
func (s *Scheduler) Policy() Policy { return Policy{&s.main.policy} }

// MakesUndeclared reports whether a submission may create its queue without a placement rule.
func (p Policy) MakesUndeclared() bool { return p.of.makesUndeclared }

// KnowsLabels reports whether node labels make partitions: under FairScheduler they do not.
func (p Policy) KnowsLabels() bool { return p.of.knowsLabels }

// ListsNeedACLs reports whether access lists of queues limit submissions with yarn.acl.enable only.
func (p Policy) ListsNeedACLs() bool { return p.of.listsNeedACLs }

// ByPartition reports whether applications' use is reported by partition.
func (p Policy) ByPartition() bool { return p.of.byPartition }

// KeepsConstraints reports whether Hadoop's handler named scheduler serves scheduling
// requests: under FairScheduler only its placement-processor does.
func (p Policy) KeepsConstraints() bool { return p.of.keepsConstraints }

// CapPriority returns the priority in force for a requested priority.
func (p Policy) CapPriority(priority int32) int32 { return p.of.priority(priority) }

// CountedAs reports whether its leaf's view counts an application as running or as pending.
func (p Policy) CountedAs(a *App) (running, pending bool) { return p.of.countedAs(a) }
