// SPDX-License-Identifier: Apache-2.0

// Package redisstate is a ResourceManager's state in Redis: it survives the ResourceManager's host, and another host
// can continue it. It implements the contract of package state.
//
// # Keys
//
// All keys are in one slot. NAME is the ResourceManager's name as a cluster or subcluster.
//
//	{creel:rm:NAME}:meta   hash: layout, epoch and name of the holder, number of the last group, time of the last write
//	                       of a pair also the lease: name and process of its holder, its end, its term
//	{creel:rm:NAME}:state  hash: the entries
//	{creel:rm:NAME}:tail   stream of a pair: the number of a group, and the names of the entries that it changed
//
// # How it works
//
// A holder takes an epoch when it opens the state. Epochs follow the server's clock, so that an emptied server does not
// repeat one. All transactions that arrive while a group is under way become the next group, and one script applies it.
// The script compares the epoch, so a former holder changes nothing. It also compares the group's number. A group that
// is sent again after a lost answer is applied once, and a group that follows a missing one is refused: the server has
// lost acknowledged writes ([state.ErrLost]). An idle holder asks every second whether it still is one.
//
// While Redis does not answer, transactions wait, and with them the responses that depend on them. The ResourceManager
// serves everything else.
//
// # Followers
//
// The holder of a pair appends each group to a bounded tail. A [Follower] has a copy of all entries after a group. It
// reads the names that later groups changed, and their present values, by one script. If the tail lacks a group, or
// another process has opened the state, it reads all entries again. Lead opens the state and continues the copy only
// if the previous holder is the one that the copy followed.
//
// # Lease
//
// A [Lease] decides which process of a pair may answer. Redis measures its term by its own clock. The epoch alone
// protects the entries: a lease bounds the time in which a former holder still answers reads.
//
// # Durability
//
// A group is acknowledged when the primary has applied it, and Config.Redis.Wait replicas have received it. Package
// statestore/redis describes the losses that each setting of Redis permits. A loss that a running holder cannot miss
// ends it. A holder that opens the state after the loss cannot detect it.
package redisstate
