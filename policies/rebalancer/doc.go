// SPDX-License-Identifier: Apache-2.0

// Package rebalancer decides what holds for queues in the federation as a
// whole: guarantees, weights and maxima over all members, however unevenly
// demand appears in them. It is never on the path of an allocation.
//
// It has two halves that do not need each other.
//
//   - Maxima are kept exactly, by escrow (package escrow): members take parts of
//     a maximum from a record in the store, under leases, with or without a
//     rebalancer.
//   - Guarantees and weights: Planner computes from the members' reports what
//     each queue is entitled to in the federation and how much of that in each
//     member, and the leader publishes it as a subcluster.Plan with a lease.
//     Routers and proxies have it in their view while the lease lasts: balanced
//     homes go to members in which the queue has not used its entitlement, and
//     balanced splits ask and wait there. Escrow makes room by it: a member beyond
//     its share gives way to one below its own. Without a plan shares are even,
//     and homes and splits are decided by room alone.
//
// # What the driver does (package server)
//
//  1. ReadPools makes the input from a view and the queue tree, for nodes without a label and
//     for each label (Read), and SlowStart lets members
//     that are new or back count with a part of their size; Planner.Plan computes;
//     Publish shapes what came out by the plan before. At each interval, and sooner
//     when what queues want or use changed by much, by the one process that holds the
//     lease "rebalancer". Not while a document says that plans are paused.
//  2. What a plan changed is added to the record of decisions; percentages of the
//     queue tree are written anew when the federation's size changed.
//  3. GivePreemption adds what members may take back from others for queues that have a
//     preemption budget; ResourceManagers follow it (server.Follower) while its lease lasts.
//  4. GiveCapacities adds what queues are to get in each member before others there get more
//     than theirs; ResourceManagers make of that and of what is configured what each of
//     their queues is guaranteed (MemberCapacities), while the plan's lease lasts.
//  5. A plan is written under that lease: a deposed leader's is refused.
//  6. By setting it holds the invariants (package invariants) against what members report.
//
// Which waiting applications move to another member is decided by ChooseMoves, which
// routers ask: they can list and move them (router/moves), and drains need it where no
// rebalancer runs.
//
// # Invariants
//
//   - A plan is feasible after every sweep: no member gives more than it has, no
//     queue is given more than it wants there, or than its maximum in all.
//   - It wastes nothing: who is given less than it wants has a full member, or a
//     maximum.
//   - Entitlements keep guarantees, or an equal part of each where more is
//     guaranteed than there is; they sum to what there is or is wanted, and grow
//     with weight. At each queue of the tree, among the queues right below it.
//   - The same input gives the same entitlements, and weights that differ by
//     less than the dead band stay. No weight changes by more than the step.
//   - Rounded shares sum to the rounded sum (Round).
//
// # What is not built yet
//
// Built: the queue tree as a document (maximum, user limit, guarantee, weight, absolute or
// in percent, opt-out), its commands through the routers (router/operator), escrow of
// maxima in creel's ResourceManagers and, by their agents, in Hadoop's, of user limits in
// creel's alone, plans over the tree, shares of maxima by plan, homes and splits by plan,
// one leader and its successor, waiting applications moved out of drained and loaded
// members, invariants held against members' reports, drift of the members' queues mended
// when somebody asks for it or a setting says so (Mend).
//
// Queue capacities in creel's ResourceManagers follow the plan under its lease
// (GiveCapacities, MemberCapacities).
//
// Nodes of a label are a pool of their own, with a tree, plans, budgets and records of escrow for each
// (ReadPools; docs/adr/0027-a-pool-of-nodes-for-each-label.md).
//
// Not yet: capacities in Hadoop's that are amounts do not follow. Of several
// resource types the dominant one counts in plans. All that waits is taken to be able to
// run in any member that has its queue.
package rebalancer
