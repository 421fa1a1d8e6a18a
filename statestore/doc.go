// SPDX-License-Identifier: Apache-2.0

// Package statestore is the contract of the federation's shared truth: the members, the home of each application, the
// policies, the lease holders. They make routers and proxies stateless. The package has the records, the promises as
// one type (Store), and the checks and errors that all stores share. statestore/memory implements the promises in one
// process, statestore/redis between processes, statestore/zookeeper and statestore/mariadb between processes of creel
// and Hadoop. statestore/storetest tests this page on all.
//
// # Promises
//
// Only the store's clock counts. The store computes leases, times to live and ages from it when they are read. A
// caller's clock has no effect.
//
// Every change may be repeated. A caller that lost an answer repeats the call with the same arguments and gets the
// lost answer: a repeat is success, never an error. A store repeats a call by itself if that is safe. For example, it
// sends a Claim whose answer was lost again until the deadline, as its caller would. It repeats Move, Acquire and
// Drain only if they certainly did not happen, because a second one could undo later changes by others.
//
//  1. Members. Register admits one epoch of a member. It rejects an epoch below the newest with creel.ErrStale; so do
//     later calls of Heartbeat, Drain and Deregister by that epoch. A heartbeat of a member that is not registered
//     with that epoch, or has deregistered, fails with creel.ErrNotRegistered; the member then registers again.
//     "Alive" is not stored: subcluster.Build computes it from the age of the last heartbeat.
//  2. Homes. Claim returns the home of an application, which is the claimed one if there was none. All claims,
//     through any routers, return the same winner. Claims and moves of an application are numbered. The claim that
//     made the record has number 1; no caller receives it if the store repeated that claim by itself. Only Move
//     changes a home, by compare-and-set: it needs the right old home and the newest number. So no claim of the old
//     home can have followed the mover's read. Otherwise it returns creel.ErrConflict with the current home. Some
//     homes cannot promise to reject an application: Absent measures for how long such a home has not known it, by
//     the store's clock, whichever routers ask. Accept records that such a home has accepted it. Forget is for callers
//     to which the home's ResourceManager reported the application's end. The record stays, and Claim still returns
//     it, until its time to live ends by the store's clock; then the application is unknown. Sweep deletes expired
//     records.
//  3. Reservations have homes by the same promises.
//  4. UAMRecord. A record for each attempt lists the subclusters in which it has UAMs, with all the data that a
//     restarted proxy needs to continue. The proxy saves before it acts. Revisions detect two proxies that both
//     consider themselves the attempt's owner: the second gets creel.ErrConflict.
//  5. Policies. A write names the version it replaces. It makes a version that is higher than any before in any
//     queue, and stores it in the history. A document that the store's validation rejects never replaces a good one.
//     Subscribers are notified of a change at once; a poll of Records finds it if the notification is lost.
//  6. Documents. A write names the version it replaces and, optionally, the store it was decided on: a store that may
//     have lost acknowledged writes has another source and rejects it. Versions rise within a class. Parts written
//     with a document are all read from one version of it.
//  7. Leases. There is one holder at a time; each new holder's token is higher than any before. A write made Under a
//     lease carries its token, and fails with creel.ErrStale once a later holder's Acquire has returned.
//  8. Keys. A ring of secrets is rotated by compare-and-set on the current key's number; the old key stays readable
//     for a stated time.
//  9. Daemons. A daemon's record is listed until it is dropped, or expires after its last renewal. No other promise
//     depends on it.
//  10. Schema. CheckSchema writes its version into an empty store and rejects one that this creel cannot read.
//
// # Errors
//
// All errors are *creel.Error or wrap one. A store that cannot be reached, is read only, loading, failing over or out
// of memory returns creel.ErrUnavailable with RetryAfter set. A change that ended with it may or may not have happened:
// repeat it. After creel.ErrInvalidRequest the store is unchanged.
//
// # Not promised
//
// Reads (Home, Records, UAMRecord and the listings) may lag on a store that replicates: a partitioned old primary
// answers them until it learns of the new one. Claim, Move, leases and all other changes do not lag: they are decided
// at the primary that also makes the change durable. statestore/redis describes possible losses in an asynchronous
// failover, and the setting that prevents them.
package statestore
