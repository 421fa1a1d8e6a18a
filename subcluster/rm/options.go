// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Config is a Machine's configuration. Defaults() returns YARN's values.
type Config struct {
	ClusterTimestamp int64 // ms since epoch of this ResourceManager's first epoch; part of application ids
	Epoch            int64 // rises with each work-preserving restart; part of container ids
	FirstEpoch       int64 // of the first start; containers of earlier epochs are another ResourceManager's

	// ResourceTypes beyond memory-mb and vcores, in the order of Hadoop's reports. At most MaxTypes in all.
	ResourceTypes []creel.ResourceType
	MinAllocation creel.Resource // yarn.scheduler.minimum-allocation-*; sizes are rounded up to multiples of Increment
	MaxAllocation creel.Resource // yarn.scheduler.maximum-allocation-*
	Increment     creel.Resource // zero = MinAllocation

	Queues    queues.Spec
	Placement queues.Placement // nil: submissions name their queue

	// Volatile skips Save actions: no state survives the process (simulation).
	Volatile bool

	MaxAttempts       int               // yarn.resourcemanager.am.max-attempts [2]
	GlobalMaxAttempts int               // yarn.resourcemanager.am.global.max-attempts; 0 = MaxAttempts
	MinNodeVersion    string            // yarn.resourcemanager.nodemanager.minimum.version [any]
	NodeExpiry        time.Duration     // yarn.nm.liveness-monitor.expiry-interval-ms [600 s]
	AMExpiry          time.Duration     // yarn.am.liveness-monitor.expiry-interval-ms [600 s]
	ContainerExpiry   time.Duration     // yarn.resourcemanager.rm.container-allocation.expiry-interval-ms [600 s]
	DecommissionAfter time.Duration     // yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs [3600 s]
	ForgetUntracked   time.Duration     // yarn.resourcemanager.node-removal-untracked.timeout-ms [60 s]
	DiagnosticsLimit  int               // characters: yarn.app.attempt.diagnostics.limit.kc, times 1,024 [64 * 1,024]
	MaxCompletedApps  int               // yarn.resourcemanager.max-completed-applications [1000]
	AutoUpdate        bool              // yarn.resourcemanager.auto-update.containers [false]
	Constraints       ConstraintHandler // yarn.resourcemanager.placement-constraints.handler [off]
	PopularTagsFirst  bool              // placement-constraints.algorithm.iterator, of ConstraintsTried
	PlacementTries    int               // calls of an AM: placement-constraints.retry-attempts [3]
	ReservedNodes     float64           // share 0..1 of nodes that may be reserved at once [0.25, at least one node]
	AdminACL          queues.ACL        // yarn.admin.acl
	ACLs              bool              // yarn.acl.enable: access lists of queues and limits of priorities apply
	// Rights, if set, decides instead of access lists of queues. The owner calls it, so it must not block.
	Rights func(*Right) bool

	// RecoveredCompleted is the number of ended applications that a restart recovers, the last ended ones:
	// yarn.resourcemanager.state-store.max-completed-applications [MaxCompletedApps]; negative = none.
	RecoveredCompleted int

	// LogAggregation enables the log aggregation status of applications (yarn.log-aggregation-enable). LogTimeOut is
	// the time for it after the end of an application [600 s] (yarn.log-aggregation-status.time-out.ms). LogMessages
	// is the number of messages stored per node (yarn.resourcemanager.max-log-aggregation-diagnostics-in-memory).
	LogAggregation bool
	LogTimeOut     time.Duration
	LogMessages    int

	// Opportunistic is set if opportunistic containers are allocated
	// (yarn.resourcemanager.opportunistic-container-allocation.enabled); nil: asks for them are treated as guaranteed.
	Opportunistic *opportunistic.Config

	PortInNames bool // yarn.scheduler.include-port-in-node-name: asks name a node by host:port

	Labels  LabelSource // yarn.node-labels.enabled and .configuration-type [off]
	AMLabel string      // yarn.node-labels.am.default-node-label-expression: for AMs whose submission names none
}

// ConstraintHandler selects the handling of scheduling requests.
type ConstraintHandler uint8

// Handlers, by Hadoop's names.
const (
	ConstraintsOff   ConstraintHandler = iota // disabled: such requests are rejected
	ConstraintsKept                           // scheduler: a request waits until it can be placed
	ConstraintsTried                          // placement-processor: a request is rejected after some calls
)

// MaxTypes limits the resource types of one machine, including memory and vcores.
const MaxTypes = 8

// TypeNames returns the names of all resource types, memory and vcores first.
func (c *Config) TypeNames() []string {
	names := []string{creel.MemoryName, creel.VCoresName}
	for i := range c.ResourceTypes {
		names = append(names, c.ResourceTypes[i].Name)
	}
	return names
}

// Defaults returns YARN's default values and one leaf queue, root.default.
func Defaults() Config {
	return Config{
		MinAllocation:     creel.Resource{MemoryMB: 1024, VCores: 1},
		MaxAllocation:     creel.Resource{MemoryMB: 8192, VCores: 4},
		MaxAttempts:       2,
		NodeExpiry:        600 * time.Second,
		AMExpiry:          600 * time.Second,
		ContainerExpiry:   600 * time.Second,
		DecommissionAfter: 3600 * time.Second,
		ForgetUntracked:   60 * time.Second,
		DiagnosticsLimit:  64 << 10,
		MaxCompletedApps:  1000,
		PlacementTries:    3,
		LogTimeOut:        600 * time.Second,
		LogMessages:       10,
		ReservedNodes:     0.25,
		AdminACL:          queues.ACL{All: true},
		Queues:            queues.Default(),
	}
}

// StartOf returns the official start time of a ResourceManager; its milliseconds are part of application ids. In YARN
// only this time distinguishes ids. Two members of a federation that start in the same millisecond, e.g. after a
// power outage, would issue equal ids. So StartOf chooses, within the second before now, the millisecond that belongs
// to the epoch. Epochs below a thousand have different ones, and so have multiples of a thousand up to a million.
// Epoch 0, the default of all ResourceManagers, has no such millisecond: it uses the clock's. Two of them issue equal
// ids if they start in the same millisecond, as in Hadoop. The start is later than last, the previous start in the
// journal, even if the clock was set back.
func StartOf(now time.Time, epoch int64, last time.Time) time.Time {
	at := now.UnixMilli()
	if epoch != 0 {
		at -= ((at-epoch-epoch/1000)%1000 + 1000) % 1000
	}
	if before := last.UnixMilli(); !last.IsZero() && at <= before {
		at += (before-at)/1000*1000 + 1000
	}
	return time.UnixMilli(at)
}

// A Right is a question to Config.Rights: may a user submit to a queue, or administer it.
type Right struct {
	User       string
	Queue      creel.QueuePath // the whole path
	Administer bool
	Listed     bool // the access lists allow it
}
