// SPDX-License-Identifier: Apache-2.0

package queues

import "time"

// Scheduler selects the rules of a queue tree.
type Scheduler uint8

// Hadoop's two schedulers whose configuration creel reads.
const (
	CapacityScheduler Scheduler = iota // yarn.scheduler.capacity.*
	FairScheduler                      // the allocation file of the FairScheduler
)

// Calculator selects the resource types that a scheduler compares and checks.
type Calculator uint8

// Hadoop's two resource calculators.
const (
	MemoryOnly Calculator = iota // DefaultResourceCalculator: only memory
	Dominant                     // DominantResourceCalculator: every type
)

// Spec is a whole queue tree with its global settings: the content of capacity-scheduler.xml or fair-scheduler.xml.
// Code that builds queues from it calls Validate first.
type Spec struct {
	Scheduler  Scheduler
	Calculator Calculator
	Root       Queue // Name "root"

	// MaxApplications limits pending and running applications of the whole cluster (CapacityScheduler:
	// maximum-applications, default 10000); each leaf without its own limit gets a share by absolute capacity. 0 =
	// none.
	MaxApplications int
	// MaxQueueApps replaces MaxApplications in the limits of single queues, if it is lower and not 0.
	MaxQueueApps int
	// These are locality delays in missed opportunities: chances to run on a node that is not local.
	// CapacityScheduler: node-locality-delay (default 40; -1 = no wait) and rack-locality-additional-delay (-1 = in
	// proportion to the containers asked for).
	NodeLocalityDelay           int
	RackLocalityAdditionalDelay int
	// FairScheduler: yarn.scheduler.fair.locality.threshold.{node,rack}, the fraction of the cluster's nodes to skip;
	// negative = do not wait.
	NodeLocalityThreshold, RackLocalityThreshold float64
	// These are locality delays in time, which end a wait even without opportunities; 0 = none.
	NodeLocalityWait, RackLocalityWait time.Duration

	// UserMaxApps limits the running applications of named users in the whole cluster (max-parallel-apps of
	// CapacityScheduler, maxRunningApps of FairScheduler); UserMaxAppsDefault applies to all others. 0 = no limit;
	// negative = none runs.
	UserMaxApps        []UserLimit
	UserMaxAppsDefault int

	// MaxClusterPriority caps application priorities (yarn.cluster.max-application-priority).
	MaxClusterPriority int32
	// Workflows sets the priority of applications of workflows, whatever they request (CapacityScheduler:
	// workflow-priority-mappings). A tag that starts with WorkflowTag names a workflow (yarn.workflow-id.tag-prefix).
	Workflows   []WorkflowPriority
	WorkflowTag string
	// Vectors divides capacity per type: first amounts, then percentages of the remainder, then weights of the rest.
	// Siblings may mix units, and so may one queue. CapacityScheduler: legacy-queue-mode.enabled=false.
	Vectors bool
	// SizeWeight is the SizeWeight of every queue: yarn.scheduler.fair.sizebasedweight.
	SizeWeight bool
	// ReservationsOff forbids reservations of nodes for containers that are too big now.
	ReservationsOff bool

	Preemption Preemption // of containers [off]
}

// UserLimit is a limit or weight for one user.
type UserLimit struct {
	User   string
	Max    int
	Weight float64 // user-settings.<user>.weight; 0 counts as 1
}

// Default returns YARN's default values and one leaf queue, root.default.
func Default() Spec {
	return Spec{
		MaxApplications:             10000,
		NodeLocalityDelay:           40,
		RackLocalityAdditionalDelay: -1,
		NodeLocalityThreshold:       -1,
		RackLocalityThreshold:       -1,
		Root: Queue{
			Name:     "root",
			Capacity: PercentOf(100),
			Submit:   ACL{All: true},
			Admin:    ACL{All: true},
			Children: []Queue{{Name: "default", Capacity: PercentOf(100)}},
		},
	}
}
