// SPDX-License-Identifier: Apache-2.0

// Package invariants has the promises about queues in the federation as a whole, each promise once: a rule is a
// function of observed values, and returns the breach in numbers. The demo (internal/app/demo) and the simulator
// (internal/app/sim) check the rules on the ResourceManagers themselves, at one moment. Reports checks them on
// members' reports and the store's documents, for the leading rebalancer in production.
//
// # Coverage of reports
//
//   - global_maximum, user_limits, member_loss, rounding: exact for the records of escrow, each of which is one
//     atomic document. Maxima are also checked on the use that members report, whose reports are of different
//     moments: a breach is use above the maximum in two successive checks. Reports do not contain the grants of each
//     user.
//   - parent_consistency, true_headroom: exact, in each report of creel's ResourceManagers: the use of a queue's
//     children sums to its use, and a queue's reported headroom is within each queue above it and the free resources.
//     Reports do not contain the headroom sent to AMs.
//   - stability: exact, for one plan and the plan before it.
//   - guarantee, work_conservation, no_starvation: states that last for longer than Within. In reports, an ask that
//     insists on a host, that is larger than any node's free resources, or whose user is at a limit looks like any
//     other. So a breach of these is a reason to investigate, not a proof.
//   - rebalancer_loss: the first, third, sixth and eighth while no plan is in force: plans are paused or only shown,
//     or a new leader finds none. The time in which no rebalancer ran is not checked.
//   - locality cannot be judged from reports: they do not say which asks wait for which host.
package invariants
