// SPDX-License-Identifier: Apache-2.0

package queues

// Policy orders the applications of a leaf, or the children of a parent.
type Policy uint8

// Ordering policies. Fifo, FairShare, DRF and PriorityFirst order applications of a leaf; Utilization,
// PriorityUtilization, FairShare, DRF and HDRF order the children of a parent.
const (
	// fifo in a CapacityScheduler leaf, utilization between its queues, fair in FairScheduler
	PolicyDefault       Policy = iota
	Fifo                       // by application priority, then by submission
	FairShare                  // least memory used over weight (and FairScheduler's minimum shares)
	DRF                        // least dominant share over weight
	PriorityFirst              // strictly by priority, then by least use
	Utilization                // used over guaranteed (CapacityScheduler)
	PriorityUtilization        // the same; among queues on the same side of their guarantee, queue priority first
	HDRF                       // hierarchical DRF: shares rescaled from below, blocked children left out
)

// NodeOrder selects one of the nodes with free resources for a container.
type NodeOrder uint8

// Node orders. NodeOrderDefault inherits. At the root it is Spread, because an idle YARN cluster fills node after
// node by heartbeat.
const (
	NodeOrderDefault NodeOrder = iota
	Spread                     // most free resources first
	Pack                       // least free resources that still fit first
)
