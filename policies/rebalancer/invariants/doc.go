// SPDX-License-Identifier: Apache-2.0

// Package invariants has what is promised of queues in the federation as a whole, each
// promise once: a rule is a function of what was seen, and says what is wrong with it in
// numbers. The demo (internal/app/demo) and the simulator (internal/app/sim) hold the
// rules against ResourceManagers themselves, at one moment; Reports holds them against
// what members report and the store knows, for the leading rebalancer in production.
//
// # What reports can tell
//
//   - global_maximum, user_limits, member_loss, rounding: of the records of escrow, which
//     are each one atomic document, exactly. Maxima also of what members report to use,
//     whose reports are of different moments: above in two looks one after the other. What
//     each user was granted is not in reports.
//   - parent_consistency, true_headroom: exactly, in each report of ResourceManagers of
//     ours: what queues below one use sums to its use, and what a queue is said to be able
//     to get is within each queue above it and what is free. What AMs were told is not in
//     reports.
//   - stability: exactly, of one plan and that before it.
//   - guarantee, work_conservation, no_starvation: what lasts for longer than Within. An ask
//     that insists on a host, that is larger than what any node has free, or whose user is
//     at a limit looks as any other in reports, so that a breach of these is a reason to
//     look, and not a proof.
//   - rebalancer_loss: the first, third, sixth and eighth where no plan is in force: plans
//     are paused or only shown, or a leader begins that finds none. Of a time in which no
//     rebalancer ran, nobody looked.
//   - locality cannot be told from reports, and is not judged: they do not say what waits
//     for which host.
package invariants
