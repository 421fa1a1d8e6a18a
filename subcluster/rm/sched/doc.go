// SPDX-License-Identifier: Apache-2.0

// Package sched decides who gets what where. It knows queues, users, asks, nodes
// and their room, and containers as amounts in places. It does not know attempts'
// life cycles, tokens, journals or protocols: package rm drives it.
//
// # What it promises
//
//   - No grant takes a node above its size, a queue on the path above its maximum,
//     or a user of a leaf further above the limit than one container.
//   - After Schedule there is nothing that an application asks for which both its
//     limits and some node would admit, other than what delay scheduling, a
//     reservation, or an ask before it that waits for a queue's maximum holds back
//     (Audit.Unserved).
//   - Placement is driven by events, not by heartbeats: an ask is tried when it
//     comes, and room is offered when it appears.
//   - Whoever waits, but cannot be helped by what happened, costs nothing.
//   - Equal calls at equal times give equal states, byte for byte (AppendState).
//
// # What the caller does
//
//  1. One goroutine owns the Scheduler. It calls At before anything else, when
//     time has passed.
//  2. Node and App are embedded in what the caller knows of a node and an
//     application, made known once (AddNode, AddApp), and changed by methods of the
//     Scheduler alone.
//  3. It says at once who may be given containers (SetOpen).
//  4. After any change, and before it changes anything else that depends on it, it
//     calls Schedule and books what was granted: the amounts are charged already,
//     and each is to be released once (Release).
//  5. It calls Tick at NextDeadline, and does what Orders says about containers
//     that are taken back.
//
// # How it decides
//
//	Serve ── asks changed ────────► try ──┐
//	                                      ├──► give: limits up the tree, then a
//	Schedule ── node, limit ──► pick ─────┘    node from the index, then the grant
//	                            tree order
//	                            over those that wait
//
// Nodes' labels divide the cluster: each partition is a Scheduler of its own over its
// nodes, with the label's capacities; the owner calls the default partition's, which
// leads to the others (partition.go). What is idle of a shared partition is lent to
// asks without a label (lend.go). No ask with a label gets a container outside its
// partition, and no ask without one gets one in an exclusive partition.
//
// The files, in reading order: cycle.go (the main cycle, on a page), pick.go (who
// is next), give's parts limits.go and place.go, grant.go; ask*.go, app.go, node.go,
// queue.go (what it knows); policy.go with policy_capacity.go and policy_fair.go
// (what tells Hadoop's schedulers apart), order.go with order_*.go (ordering
// policies, a file each); activate.go, delay.go, reserve.go, blocker.go,
// waiting.go, increase.go, cap.go (what holds asks back and lets them go on);
// constraint.go, tags.go (scheduling requests);
// preempt.go, then preempt_*.go (how containers are taken back for those who wait);
// charge.go, queue_sizes.go, fairshare.go (sums); reload.go, dynamic.go, move.go
// (the tree changes); partition.go, lend.go (labels of nodes); why.go, whatif.go, report.go, audit.go (questions).
// Reading ahead is in prefetch.go; amounts and nodeindex are packages of their own.
//
// Sources: sharing follows Hadoop's documented CapacityScheduler and FairScheduler
// keys, Dominant Resource Fairness (Ghodsi et al., NSDI 2011), hierarchical DRF
// (Bhattacharya et al., SoCC 2013) and delay scheduling (Zaharia et al., EuroSys
// 2010).
package sched
