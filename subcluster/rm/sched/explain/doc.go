// SPDX-License-Identifier: Apache-2.0

// Package explain has the reasons for which applications wait, the outcomes of asks at a node, and the figures of
// queues: in sentences for people, and as limits and numbers for programs.
//
// It decides nothing about containers and has none of the scheduler's rules. The caller asks these rules, and passes
// their verdicts as plain values: which limit stops an ask, and which clause excludes it from a node. So an explanation
// cannot differ from the decision. Package sched fills the values in one file (explain_snapshot.go).
//
//   - Line, Stop and NoNode are the three waits: for activation, for a limit or a reservation, and for a node. Each
//     returns its Why.
//   - Tally counts nodes by the first clause that excludes an ask. Scan is for lists of thousands of applications: it
//     counts once for all asks of a size.
//   - QueueAt is a queue with its waiting applications at a node. On returns their outcomes there.
//   - QueueView and the types in views.go are the figures of queues, users and applications, as documents have them.
//
// # Guarantees
//
//   - Equal values lead to equal text.
//   - A Why with a limit has a sentence. Try is a remedy, or empty if there is none.
//   - The limit of a Scan is that of NoNode.Why for the same nodes, or LimitNodes.
//
// # The caller's duties
//
// The limits are checked in the scheduler's order, and the first one that stops the ask is passed. A Node's clauses
// after the first one that excludes the ask may be left out. A Tally has all nodes of one partition.
package explain
