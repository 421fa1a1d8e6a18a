// SPDX-License-Identifier: Apache-2.0

// Package preempt chooses the containers that preemption takes back: for which ask, on which node, and which
// containers there. It reads a snapshot of plain values, and its claims change nothing: the caller carries them out.
//
// A Round has needs (shortages, with the asks that wait) and budgets (excess), and counts the claims of earlier rounds
// that it renews. Its Offers are the containers that may be taken, in the order of loss. For each ask, in the order of
// needs, it makes claims: so many containers of the ask on one node, and the victims there. It uses one container that
// frees enough, else the node that is cleared by the fewest, and AMs last. With LeastWork it clears the node that
// loses the least work, and exchanges the claims of an ask for cheaper ones.
//
// Needs and budgets come from the queues' policies. FairLeaf has those of FairScheduler: the shortage of a leaf after
// its timeouts, and its use above its share. Soften limits the budgets of one round.
//
// # Guarantees
//
//   - Each claim serves an ask: nothing is taken that no ask waits for, and with the victims ended the ask fits.
//   - No more is claimed for a queue than its need, and for a user than the limit, except the last container.
//   - No more is taken from a queue than its budget, nor under a claim for balance more than its excess over the ideal.
//   - A queue loses nothing to its own need, an application nothing to its own asks, and a container ends once.
//   - The amount under notice stays within the round's limit, except for a first claim, and the federation's budgets.
//   - Equal rounds make equal claims: nothing depends on maps or chance.
//
// # The caller's duties
//
// The snapshot has one value for each queue, user, application, ask and node, however often it is mentioned, and does
// not change during the round. Needs and budgets are complete, and sorted, before the first claim. Offers are only of
// nodes that may be cleared; the caller leaves out containers that already are victims.
package preempt
