// SPDX-License-Identifier: Apache-2.0

// Package escrow enforces a queue's federation-wide maximum exactly, with no central process on the path of an
// allocation. Each such queue has one Record in the state store with the maximum and the part of it, the cap, that
// each subcluster holds under a lease. Both sides are here and pure: Record is the granting side, Member the
// subcluster's side.
//
//	Member.Ask ──► Request ──► Record.Ask ──► Grant ──► Member.Granted
//	  in the RM's turn           on the record as read,      when the write
//	                             written by compare-and-set   has succeeded
//
// UsersRecord and Users share out the limit of each user of a queue in the same way: see there.
//
// There is no granting process: a member reads the record, computes its own grant, and writes the record unless
// another member wrote meanwhile. So this works with no rebalancer at all; the rebalancer adds the shares by which
// members that together want more than the maximum yield to each other.
//
// # The driver's duties
//
//  1. Member.Ask and the change of the cap in force happen in one turn of the ResourceManager, so that nothing is
//     allocated between reading the use and lowering the cap.
//  2. The time passed to Ask is read before the record is. The clock is one that also runs while the machine sleeps.
//  3. One request of a member and queue is under way at a time. When the write succeeds, Granted is called; when it
//     fails or its outcome is unclear, it is not, and the next attempt begins with Ask and reads the record again.
//  4. The write carries the version of the record and the source of the store (statestore.Documents) that were read.
//  5. From Member.Ends on nothing more is allocated, whatever else happens.
//
// # Invariants
//
// With requests, writes and answers late, doubled or lost, members restarted or cut off, and the store failed over or
// emptied (one of these at a time):
//
//   - The caps in force in all members never sum above the maximum, in any resource type. If the maximum was lowered,
//     or the queue used more when it got its maximum, no cap rises until the sum is below.
//   - A cap is lowered first in the member, then in the record, and raised in the opposite order: the record never
//     counts less than a member has.
//   - A member's cap stays its own until its lease is over, and counts for Terms.Linger longer, since its containers
//     run on though it is cut off.
//   - A member without demand holds nothing that other members want.
//   - If the cap is a setting of a ResourceManager without leases (Standing), it counts until it is seen to be lower.
//
// TestEveryOrderOfMessages, TestEveryOrderWithSettings and TestEveryOrderWithUsers explore these on this very code.
// Not covered: containers that outlive Linger in a member that is cut off; a primary that was cut off together with
// members and continues to answer them (see Wait in statestore/redis); a store without a source.
package escrow
