// SPDX-License-Identifier: Apache-2.0

// Package rebalancer enforces limits of queues that span the whole federation: guarantees, weights and maxima over
// all members, however unevenly demand appears in them. It is never on the path of an allocation.
//
// It has two independent halves.
//
//   - Maxima are exact, by escrow (package escrow). Members take parts of a maximum from a record in the store, under
//     leases. This works without a rebalancer too.
//   - Guarantees and weights: from the members' reports Planner computes each queue's entitlement in the federation,
//     and its part in each member. The leader publishes these as a subcluster.Plan with a lease. While the lease
//     lasts, the plan is in the view of routers and proxies. Balanced homes go to members in which the queue has not
//     used its entitlement, and balanced splits ask and wait there. Escrow follows the plan too: a member above its
//     share yields to a member below its share. Without a plan shares are even, and homes and splits are decided by
//     free capacity alone.
//
// # The driver (package server)
//
//  1. ReadPools makes the input from a view and the queue tree, for nodes without a label and for each label (Read).
//     SlowStart counts new or returning members with a part of their size. Planner.Plan computes the plan, and
//     Publish limits the changes since the previous plan. This runs at each interval, and sooner after a large change
//     of the queues' demand or use. It runs only in the process that has the lease "rebalancer", and not while plans
//     are paused (Pause).
//  2. Changes made by a plan are added to the record of decisions; percentages of the queue tree are recomputed when
//     the federation's size changed.
//  3. GivePreemption adds the amounts that members may take back from other queues for queues that have a preemption
//     budget; ResourceManagers follow it (server.Follower) while its lease lasts.
//  4. GiveCapacities adds the capacities that queues get in each member before other queues exceed theirs. While the
//     plan's lease lasts, ResourceManagers compute each queue's guarantee from these and the configured capacities
//     (MemberCapacities).
//  5. The plan is written under the lease "rebalancer": the store rejects a deposed leader's plan.
//  6. If a setting enables it, the leader checks the invariants (package invariants) against the members' reports.
//
// ChooseMoves decides which waiting applications move to another member. Routers call it (router/moves): they can
// list and move applications, and drains work without a rebalancer.
//
// # Invariants
//
//   - A plan is feasible after every sweep: no member's shares exceed its size, and no queue's share exceeds its
//     demand there, or its maximum in total.
//   - It wastes nothing: if a queue's share is below its demand, the member is full or a maximum limits the queue.
//   - Entitlements meet guarantees, or an equal part of each if the guarantees exceed the total. They sum to the
//     lesser of total and demand, and grow with weight. This applies to the children of each queue of the tree.
//   - The same input produces the same entitlements. Weights that differ by less than the dead band stay. No weight
//     changes by more than the step.
//   - Rounded shares sum to the rounded sum (Round).
//
// # Scope
//
// The queue tree is a document (maximum, user limit, guarantee, weight, absolute or in percent, opt-out), changed by
// commands through the routers (router/operator). Escrow of maxima works in creel's ResourceManagers and, by their
// agents, in Hadoop's ResourceManagers. Escrow of user limits works in creel's ResourceManagers only. Drift of the
// members' queues is mended on request or by a setting (Mend).
//
// Queue capacities in creel's ResourceManagers follow the plan under its lease (GiveCapacities, MemberCapacities).
//
// The nodes of each label form a separate pool, with its own tree, plans, budgets and escrow records (ReadPools;
// docs/adr/0027-a-pool-of-nodes-for-each-label.md).
//
// Limits: in Hadoop's ResourceManagers, capacities that are amounts do not follow plans. Plans count only the
// dominant resource type. They assume that every waiting ask can run in any member that has its queue.
package rebalancer
