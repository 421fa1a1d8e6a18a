// SPDX-License-Identifier: Apache-2.0

// Package statestore is the contract of the federation's shared truth: who is
// a member, where the home of each application is, which policies hold, who leads.
// Routers and proxies are stateless because of it. It holds the records, the
// promises, and a store in memory that keeps them (State, and Memory around it
// for concurrent callers). statestore/redis keeps the same promises between
// processes; statestore/storetest is this page as a suite both must pass.
//
// # Promises
//
// Time is the store's. Leases, times to live and ages are all computed from
// the store's clock, when they are read. A caller's clock never matters.
//
// Every change may be repeated. A caller that lost an answer asks again with
// the same arguments and gets the answer it would have had: a repeat is
// success, never an error. A store repeats by itself what it may: a Claim whose
// answer was lost is sent again until the deadline, as if its caller had. Move,
// Acquire and Drain are sent again only while they certainly have not happened,
// because a second one could undo what others did after the first.
//
//  1. Members. Register admits one epoch of a member; a lower epoch than
//     the store knows is refused with creel.ErrStale, then and in each later
//     Heartbeat, Drain by it, or Deregister. A heartbeat of a member that is not
//     registered with that epoch, or has deregistered, is refused with
//     creel.ErrNotRegistered, upon which it registers again. No stored word
//     says "alive": subcluster.Build computes it from the age of the last heartbeat.
//  2. Homes. Claim returns the home of an application, which is the claimed one
//     if there was none. Of any number of claims, through any routers, all
//     return the same winner. Claims and moves of an application are numbered,
//     from 1 for the claim that made the record (nobody gets that number, if
//     the store repeated that claim by itself). Only Move changes a home, by
//     compare-and-set: it needs the right old home and the newest number, so
//     nobody can have claimed the old home since its mover looked; else
//     creel.ErrConflict comes with the home that is. Absent counts for how long
//     a home that cannot promise to refuse an application has not known it,
//     by the store's clock, whichever routers ask. Forget is for those who
//     heard from the home's ResourceManager that the application ended: the
//     record stays, and Claim still returns it, until its time to live is over
//     by the store's clock; then the application is unknown. Sweep frees what
//     is over.
//  3. Reservations have homes by the same promises.
//  4. UAMRecord. A record for each attempt says in which subclusters it has
//     UAMs, with all that a restarted proxy needs to carry on.
//     The proxy saves before it acts. Revisions make two proxies that both
//     believe that they hold the attempt visible: the second gets creel.ErrConflict.
//  5. Policies. A write needs the version it replaces, makes a version that is
//     higher than any before in any queue, and is kept in the history. What the
//     store's validation refuses never replaces a good document. Subscribers
//     hear of a change at once; a poll of Records finds it if they do not.
//  6. Documents. A write needs the version it replaces and, if it says so, the
//     store it was decided on: a store that may have lost acknowledged writes
//     has another source and refuses it. Versions rise within a class.
//     Parts that a writer gave with a document are read of one version of it.
//  7. Leases. One holder at a time; each new holder's token is higher than any
//     before. A write made Under a lease carries its token and is refused with
//     creel.ErrStale once a later holder's Acquire has returned.
//  8. Keys. A ring of secrets, rolled over by compare-and-set on the current
//     key's number; the old one stays readable for a stated time.
//  9. Daemons. A record of a daemon is listed until its time to live is over since it was
//     kept last, or it was dropped. No other promise is built on it.
//  10. Schema. CheckSchema writes its version into an empty store and refuses one that this creel
//     cannot read.
//
// # Errors
//
// All are *creel.Error or wrap one. A store that cannot be reached, is read
// only, loading, failing over or out of memory gives creel.ErrUnavailable with
// RetryAfter set. A change that ended so may or may not have happened: repeat
// it. creel.ErrInvalidRequest means that the store was not touched.
//
// # What is not promised
//
// Reads (Home, Records, UAMRecord and the listings) may lag on a store that
// replicates: a partitioned old primary answers them until it learns of the new
// one. Claim, Move, leases and all other changes do not act on such a lag: they
// are decided at the primary that also makes the change durable (see
// statestore/redis for what an asynchronous failover may lose, and the setting
// that closes it).
package statestore
