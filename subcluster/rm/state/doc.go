// SPDX-License-Identifier: Apache-2.0

// Package state is the contract of a ResourceManager's durable state: a map from keys to values that one process at a
// time, its holder, changes by transactions. The journal on this machine's disk (package journal) and a
// shared state in Redis (package redisstate) implement it. Package statetest is the contract as tests.
//
// # Promises of a Log
//
//  1. Opening makes the process the holder. A state on a disk refuses a second process. A shared state fences the
//     previous holder: no transaction of it becomes durable after that, and its Run returns [ErrFenced].
//  2. Each returns every entry whose transaction was acknowledged, and nothing of a transaction that is not complete.
//     After the opening no other process changes the entries.
//  3. Transactions become durable in the order of Commit, each as a whole. Transactions that arrive while the state is
//     busy become durable as a group. done is called in the same order, after the transaction is durable.
//  4. After a transaction failed, all later ones fail too. The holder must end, and open the state again.
//  5. Confirm returns nil only if no other process was the holder when it was called. A holder calls it after a pause,
//     before it answers anything.
//
// # Promises of a Follower
//
// A shared state can be followed: a standby has a copy of the entries, so that its takeover reads only the latest
// changes.
//
//  1. Follow and the copy never disturb the holder.
//  2. Lead is an opening: it fences the previous holder. Each of the returned Log then returns exactly the entries of
//     promise 2 above, whatever the copy was.
//
// # The holder's duties
//
//  1. Open the state, and read the entries with Each.
//  2. Start Run in a separate goroutine.
//  3. Commit a transaction, and act on it only after done was called with nil.
//  4. End the process when Run returns an error.
package state
