// SPDX-License-Identifier: Apache-2.0

// Package invariants has one rule for each federation-wide promise about queues. A rule is a function of observed
// values, and returns an error with the numbers of the breach. The demo (app/demo) and the simulator
// (app/sim) check the rules on the ResourceManagers themselves, at one moment. In production, Reports checks
// them for the leading rebalancer, on members' reports and the store's documents.
//
// # Coverage of reports
//
//   - global_maximum, user_limits, member_loss, rounding: exact for the records of escrow, since each is one atomic
//     document. Maxima are also checked on reported use. Members report at different moments, so a breach is use
//     above the maximum in two successive checks. Use within the members' parts is no breach: they sum to more than
//     a maximum that was lowered below use, or below a member's own. Reports do not contain the grants of each user,
//     nor numbers of opportunistic containers.
//   - parent_consistency, true_headroom: exact, in each report of creel's ResourceManagers. The use of a queue's
//     children sums to the queue's use. A queue's reported headroom is within the headroom of each queue above it,
//     and within the free resources. Reports do not contain the headroom sent to AMs.
//   - stability: exact, for one plan and the plan before it.
//   - guarantee, work_conservation, no_starvation: a breach must last for longer than Within. Reports do not show
//     whether an ask insists on a host, is larger than any node's free resources, or has a user at a limit. So a
//     breach of these is a reason to investigate, not a proof.
//   - rebalancer_loss: the first, third, sixth and eighth invariant while no plan is in force. Either plans are
//     paused or only shown, or a new leader finds no plan. The time in which no rebalancer ran is not checked.
//   - locality is not checked: reports do not contain the hosts that asks wait for.
package invariants
