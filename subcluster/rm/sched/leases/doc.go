// SPDX-License-Identifier: Apache-2.0

// Package leases has the amounts that the federation leases to this subcluster: parts of the maxima of queues, parts
// of the limits of users, and shares of preemption budgets.
//
// # It decides
//
//   - whether a use is within a lease: the amount bounds memory, vcores and the further types that the federation's
//     limit names, and nothing more is within an expired lease.
//   - which of two caps of a queue is current: one with an older version is ignored.
//   - how much of a budget is spent: budgets of one queue and label whose intervals begin at the same time share their
//     spending.
//
// # It promises
//
//   - A replaced or removed lease keeps its amount, so that the caller can compare the old with the new one.
//   - A lease may be for a queue or a label that does not exist yet.
//
// # The caller owes
//
//   - the time, in ns since the epoch, for each question.
//   - what follows from a change: package sched retries the asks that the old lease stopped.
package leases
