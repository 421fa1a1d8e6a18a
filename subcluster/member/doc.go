// SPDX-License-Identifier: Apache-2.0

// Package member is a member's side of the rebalancer. It runs next to a ResourceManager, or in the agent of Hadoop's,
// and is not on the path of an allocation.
//
//   - Keeper renews the member's parts of federation-wide maxima and user limits, and limits its queues to them.
//   - Follower applies the federation's plan while the plan's lease lasts: capacities of queues, and what preemption
//     may take.
//
// The state store is their only connection with the leading rebalancer (policies/rebalancer/server) and with other
// members. While the store is away the last caps and the last plan apply until their leases end. After that no queue
// with a federation-wide maximum grows, and the local settings apply to the rest.
package member
