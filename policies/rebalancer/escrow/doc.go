// SPDX-License-Identifier: Apache-2.0

// Package escrow keeps a queue's federation-wide maximum exactly, with no one
// on the path of an allocation. Each such queue has one Record in the state
// store with the maximum and the part of it, the cap, that each subcluster
// holds under a lease. Both sides are here, pure: Record is the giver's,
// Member the subcluster's.
//
//	Member.Ask ──► Request ──► Record.Ask ──► Grant ──► Member.Granted
//	  in the RM's turn           on the record as read,      when the write
//	                             written by compare-and-set   has succeeded
//
// What each user of a queue may use is shared out by UsersRecord and Users in the same way:
// see there.
//
// There is no giving process: a member reads the record, computes what it is
// given, and writes the record if nobody wrote meanwhile. So this works with no
// rebalancer at all; what the rebalancer adds are the shares by which members
// that want more than there is make room for each other.
//
// # What the driver does
//
//  1. Member.Ask and the change of the cap in force happen in one turn of the
//     ResourceManager, so that nothing is allocated between the use that was
//     read and the cap that was lowered.
//  2. The time given to Ask is read before the record is. The clock is one that
//     also runs while the machine sleeps.
//  3. One request of a member and queue is under way at a time. When the write
//     succeeds Granted is told; when it fails or is unclear nothing is, and the
//     next attempt begins with Ask and reads the record again.
//  4. The write carries the version of the record and the source of the store
//     (statestore.Documents) that were read.
//  5. From Member.Ends on nothing more is allocated, whatever else happens.
//
// # Invariants
//
// With requests, writes and answers late, doubled or lost, members restarted or
// cut off, and the store failed over or emptied (one of these at a time):
//
//   - the caps in force in all members never sum above the maximum, in any
//     resource type. Where the maximum was lowered, or the queue used more when
//     it got its maximum, nobody's cap rises until the sum is below;
//   - a cap is lowered first in the member, then in the record, and raised the
//     other way round: the record never counts less than a member has;
//   - what a member holds stays its own until its lease is over, and is counted
//     for Terms.Linger longer, as its containers run on though it is cut off;
//   - a member that wants nothing keeps nothing that others want;
//   - where the cap is a setting of a ResourceManager that knows nothing of leases
//     (Standing), it counts until it is seen to be lower.
//
// TestEveryOrderOfMessages, TestEveryOrderWithSettings and TestEveryOrderWithUsers explore
// these on this very code. What is not promised: containers that outlive Linger in a member
// that is cut off; a primary that was cut off together with members and goes on answering
// them (see Wait in statestore/redis); a store that cannot tell its source.
package escrow
