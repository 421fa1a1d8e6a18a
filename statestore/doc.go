// SPDX-License-Identifier: Apache-2.0

// Package statestore is the contract of the federation's shared truth: the members, the home of each application, the
// policies, the lease holders. Because of it routers and proxies are stateless. It has the records, the promises, and
// a store in memory that implements them (State, and Memory around it for concurrent callers). statestore/redis
// implements the same promises between processes; statestore/storetest is this page as a suite both must pass.
//
// # Promises
//
// Time is the store's. Leases, times to live and ages are all computed from the store's clock, when they are read. A
// caller's clock never matters.
//
// Every change may be repeated. A caller that lost an answer asks again with the same arguments and gets the answer
// it would have had: a repeat is success, never an error. A store repeats by itself where that is safe: a Claim whose
// answer was lost is sent again until the deadline, as if its caller had. Move, Acquire and Drain are sent again only
// while they certainly have not happened, because a second one could undo later changes by others.
//
//  1. Members. Register admits one epoch of a member; a lower epoch than the store knows is refused with
//     creel.ErrStale, then and in each later Heartbeat, Drain by it, or Deregister. A heartbeat of a member that is
//     not registered with that epoch, or has deregistered, is refused with creel.ErrNotRegistered, upon which it
//     registers again. "Alive" is not stored: subcluster.Build computes it from the age of the last heartbeat.
//  2. Homes. Claim returns the home of an application, which is the claimed one if there was none. Of any number of
//     claims, through any routers, all return the same winner. Claims and moves of an application are numbered, from
//     1 for the claim that made the record (no caller receives that number, if the store repeated that claim by
//     itself). Only Move changes a home, by compare-and-set: it needs the right old home and the newest number, so
//     the old home cannot have been claimed since its mover read it; else creel.ErrConflict comes with the current
//     home. Absent counts for how long a home that cannot promise to refuse an application has not known it, by the
//     store's clock, whichever routers ask. Forget is for callers to which the home's ResourceManager reported the
//     application's end. The record stays, and Claim still returns it, until its time to live is over by the store's
//     clock; then the application is unknown. Sweep frees expired records.
//  3. Reservations have homes by the same promises.
//  4. UAMRecord. A record for each attempt lists the subclusters in which it has UAMs, with all the data that a
//     restarted proxy needs to carry on. The proxy saves before it acts. Revisions expose two proxies that both own
//     the attempt by their own state: the second gets creel.ErrConflict.
//  5. Policies. A write needs the version it replaces, makes a version that is higher than any before in any queue,
//     and is stored in the history. A document that the store's validation rejects never replaces a good one.
//     Subscribers are notified of a change at once; a poll of Records finds it if they are not.
//  6. Documents. A write needs the version it replaces and, optionally, the store it was decided on: a store that may
//     have lost acknowledged writes has another source and rejects it. Versions rise within a class. Parts written
//     with a document are read of one version of it.
//  7. Leases. One holder at a time; each new holder's token is higher than any before. A write made Under a lease
//     carries its token and is refused with creel.ErrStale once a later holder's Acquire has returned.
//  8. Keys. A ring of secrets, rolled over by compare-and-set on the current key's number; the old one stays readable
//     for a stated time.
//  9. Daemons. A daemon's record is listed until it is dropped, or its time to live since the last renewal is over.
//     No other promise is built on it.
//  10. Schema. CheckSchema writes its version into an empty store and refuses one that this creel cannot read.
//
// # Errors
//
// All are *creel.Error or wrap one. A store that cannot be reached, is read only, loading, failing over or out of
// memory returns creel.ErrUnavailable with RetryAfter set. A change that ended so may or may not have happened:
// repeat it. After creel.ErrInvalidRequest the store is unchanged.
//
// # Not promised
//
// Reads (Home, Records, UAMRecord and the listings) may lag on a store that replicates: a partitioned old primary
// answers them until it learns of the new one. Claim, Move, leases and all other changes do not act on such a lag:
// they are decided at the primary that also makes the change durable (see statestore/redis for possible losses in an
// asynchronous failover, and the setting that prevents them).
package statestore
