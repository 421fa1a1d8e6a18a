// SPDX-License-Identifier: Apache-2.0

// Package redisstate is a ResourceManager's state in Redis: it survives the ResourceManager's host, and another host
// can continue it. It implements the contract of package state.
//
// # Keys
//
// Both keys are in one slot. NAME is the ResourceManager's name as a cluster or subcluster.
//
//	{creel:rm:NAME}:meta   hash: layout, epoch and name of the holder, number of the last group, time of the last write
//	{creel:rm:NAME}:state  hash: the entries
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
// # Durability
//
// A group is acknowledged when the primary has applied it, and Config.Redis.Wait replicas have received it. Package
// statestore/redis describes the losses that each setting of Redis permits. A loss that a running holder cannot miss
// ends it. A holder that opens the state after the loss cannot detect it.
package redisstate
