// SPDX-License-Identifier: Apache-2.0

// Package sched allocates containers. It works with queues, users, asks, nodes and their free resources; a container
// is an amount at a place. It has no life cycles of attempts, tokens, journals or protocols: package rm has these and
// calls it.
//
// # Guarantees
//
//   - No grant takes a node above its size, a queue on the path above its maximum,
//     or a user of a leaf more than one container above the limit.
//   - After Schedule no ask is outstanding that both its limits and some node
//     would admit, unless delay scheduling, a reservation, or an earlier ask
//     that waits for a queue's maximum stops it (Audit.Unserved).
//   - Events drive placement, not heartbeats: an ask is tried when it arrives,
//     and resources are offered when they become free.
//   - An event costs nothing for applications that it cannot help.
//   - Equal calls at equal times lead to equal states, byte for byte (AppendState).
//
// # The caller's duties
//
//  1. One goroutine owns the Scheduler. It calls At before anything else, when
//     time has passed.
//  2. Node and App are embedded in the caller's types of a node and an
//     application, registered once (AddNode, AddApp), and changed only by methods
//     of the Scheduler.
//  3. It reports at once which applications may be granted containers (SetOpen).
//  4. After any change, and before any other change that depends on it, it calls
//     Schedule and books the grants: the amounts are already charged, and each
//     must be released once (Release).
//  5. It calls Tick at NextDeadline, and carries out the Orders about preempted
//     containers.
//
// # How it decides
//
//	Serve ── asks changed ────────► try ──┐
//	                                      ├──► give: limits up the tree, then a
//	Schedule ── node, limit ──► pick ─────┘    node from the index, then the grant
//	                            tree order
//	                            over the waiting
//
// Nodes' labels divide the cluster. A Scheduler has one partition for the nodes without a label, the default one, and
// one for each label; each decides over its nodes, with the label's capacities (partition.go). The Scheduler finds the
// partition of a call, activates applications, and lets a shared partition lend its idle resources to asks without a
// label (lend.go). No ask with a label gets a container outside its partition, and no ask without one gets one in an
// exclusive partition.
//
// The files, in reading order: values.go, queue_parts.go, data.go and parts.go (all state, and the parts that own it),
// cycle.go (the main cycle, on a page), serve.go (the tries of one ask), pick.go (the order of service), give's parts
// limits.go, limits_*.go and place.go, grant.go; ask.go, app.go, node.go, queue.go, user.go (what changes the data);
// policy.go with policy_capacity.go and policy_fair.go (the differences between Hadoop's schedulers), order.go with
// order_*.go (ordering policies, a file each); line.go, limits_am.go, activate.go (applications before their AM runs);
// delay.go, reserve.go, retries.go, increase.go, cap.go (reasons to delay asks, and their end); tags.go, requests.go
// (scheduling requests); preempt.go, preempt_snapshot.go, preempt_round.go, then preempt_*.go (rounds of preemption);
// charge.go, queue_sizes.go, fairshare.go (sums); tree.go, tree_*.go (the queues of a partition), reload.go, move.go
// (changes in all partitions); partition.go, lend.go, lending.go (node labels); explain.go with explain_snapshot.go,
// report.go, asks.go, needs.go, users_wait.go (questions, which change nothing); whatif.go, audit.go, audit_changes.go
// (trials and checks); changes.go (what an audit of changes reads); prefetch.go (memory, read ahead). Separate
// packages: amounts, audit (compares books with the truth), constraints, explain (reasons and figures as sentences and
// values), leases (caps and budgets of the federation), ideal (how much preemption may take), nodeindex, places (that
// an ask names), preempt (which containers it takes), runtimes, shares and topology (nodes by host and rack).
//
// Sources: sharing follows Hadoop's documented CapacityScheduler and FairScheduler keys, Dominant Resource Fairness
// (Ghodsi et al., NSDI 2011), hierarchical DRF (Bhattacharya et al., SoCC 2013) and delay scheduling (Zaharia et al.,
// EuroSys 2010).
package sched
