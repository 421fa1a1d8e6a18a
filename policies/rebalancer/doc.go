// SPDX-License-Identifier: Apache-2.0

// Package rebalancer enforces limits of queues that span the whole federation: guarantees, weights and maxima over
// all members, however unevenly demand appears in them. It is never on the path of an allocation.
//
// It has two halves that do not need each other.
//
//   - Maxima are exact, by escrow (package escrow): members take parts of a maximum from a record in the store, under
//     leases, with or without a rebalancer.
//   - Guarantees and weights: Planner computes from the members' reports each queue's entitlement in the federation
//     and how much of that in each member, and the leader publishes it as a subcluster.Plan with a lease. Routers and
//     proxies have it in their view while the lease lasts: balanced homes go to members in which the queue has not
//     used its entitlement, and balanced splits ask and wait there. Escrow shifts parts by it: a member beyond its
//     share yields to one below its own. Without a plan shares are even, and homes and splits are decided by free
//     capacity alone.
//
// # The driver (package server)
//
//  1. ReadPools makes the input from a view and the queue tree, for nodes without a label and for each label (Read),
//     and SlowStart counts new or returning members with a part of their size; Planner.Plan computes; Publish limits
//     the changes since the previous plan. This runs at each interval, and sooner when the queues' demand or use
//     changed by much, in the one process that holds the lease "rebalancer". It does not run while a document says
//     that plans are paused.
//  2. Changes made by a plan are added to the record of decisions; percentages of the queue tree are recomputed when
//     the federation's size changed.
//  3. GivePreemption adds the amounts that members may take back from other queues for queues that have a preemption
//     budget; ResourceManagers follow it (server.Follower) while its lease lasts.
//  4. GiveCapacities adds the capacities that queues are to get in each member before other queues exceed theirs.
//     ResourceManagers compute each queue's guarantee from these and the configured capacities (MemberCapacities),
//     while the plan's lease lasts.
//  5. A plan is written under that lease: a deposed leader's plan is rejected.
//  6. If a setting says so, it checks the invariants (package invariants) against the members' reports.
//
// ChooseMoves decides which waiting applications move to another member. Routers call it: they can list and move
// applications (router/moves), and drains need it where no rebalancer runs.
//
// # Invariants
//
//   - A plan is feasible after every sweep: no member's shares exceed its size, and no queue's share exceeds its
//     demand there, or its maximum in total.
//   - It wastes nothing: a queue whose share is below its demand has a full member, or a maximum.
//   - Entitlements meet guarantees, or an equal part of each if the guarantees exceed the total; they sum to the
//     lesser of total and demand, and grow with weight. This holds at each queue of the tree, among the queues right
//     below it.
//   - The same input produces the same entitlements, and weights that differ by less than the dead band stay. No
//     weight changes by more than the step.
//   - Rounded shares sum to the rounded sum (Round).
//
// # Scope
//
// Built: the queue tree as a document (maximum, user limit, guarantee, weight, absolute or in percent, opt-out), its
// commands through the routers (router/operator), escrow of maxima in creel's ResourceManagers and, by their agents,
// in Hadoop's, of user limits in creel's alone, plans over the tree, shares of maxima by plan, homes and splits by
// plan, one leader and its successor, waiting applications moved out of drained and loaded members, invariants
// checked against members' reports, drift of the members' queues mended on request or by a setting (Mend).
//
// Queue capacities in creel's ResourceManagers follow the plan under its lease (GiveCapacities, MemberCapacities).
//
// Nodes of a label are a pool of their own, with a tree, plans, budgets and escrow records for each (ReadPools;
// docs/adr/0027-a-pool-of-nodes-for-each-label.md).
//
// Not yet: capacities in Hadoop's ResourceManagers that are amounts do not follow. Of several resource types the
// dominant one counts in plans. All waiting asks are assumed to be able to run in any member that has their queue.
package rebalancer
