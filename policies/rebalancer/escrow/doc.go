// SPDX-License-Identifier: Apache-2.0

// Package escrow enforces a queue's federation-wide maximum exactly, with no central process on the path of an
// allocation. Each such queue has one Record in the state store. It has the maximum and each subcluster's part of it,
// the cap, with a lease. This package has both sides as pure code: Record grants, and Member is the subcluster's
// side.
//
//	Member.Ask ──► Request ──► Record.Ask ──► Grant ──► Member.Granted
//	  in the RM's turn           on the record as read,      when the write
//	                             written by compare-and-set   has succeeded
//
// UsersRecord and Users divide the limit of each user of a queue in the same way.
//
// There is no granting process. A member reads the record, computes its own grant, and writes the record unless
// another member wrote meanwhile. So escrow works without a rebalancer. The rebalancer adds shares: if members
// together want more than the maximum, they yield to each other by these shares.
//
// # The driver's duties
//
//  1. Member.Ask and the change of the cap in force happen in one turn of the ResourceManager, so that nothing is
//     allocated between reading the use and lowering the cap.
//  2. The time passed to Ask is read before the record is. The clock must also run while the machine sleeps.
//  3. One request of a member and queue is under way at a time. The driver calls Granted only if the write succeeds.
//     If the write fails or its outcome is unclear, the next attempt starts with Ask and reads the record again.
//  4. The write carries the version of the record and the source of the store (statestore.Documents) that were read.
//  5. From Member.Ends on, nothing more is allocated in any case.
//
// # Invariants
//
// These apply if requests, writes and answers are late, repeated or lost, if members restart or are cut off, and if
// the store fails over or is emptied (one of these at a time):
//
//   - The caps in force in all members never sum to more than the maximum, in any resource type. The sum may be above
//     it if the maximum was lowered, or if the queue used more when it got its maximum. Then no cap rises until the
//     sum is below.
//   - A cap is lowered first in the member, then in the record, and raised in the opposite order. So the record never
//     counts less than the member's cap.
//   - A member keeps its cap until its lease is over. The cap counts for Terms.Linger longer, since the containers of
//     a member that is cut off continue to run.
//   - If other members want more, a member without demand has no cap.
//   - If the cap is a setting of a ResourceManager without leases (Standing), it counts until a lower setting is
//     read.
//
// TestEveryOrderOfMessages, TestEveryOrderWithSettings and TestEveryOrderWithUsers check these on this code. The
// invariants do not cover containers that outlive Linger in a member that is cut off, and a store without a source.
// Nor do they cover a primary that was cut off together with members and continues to answer them (see Wait in
// statestore/redis).
package escrow
