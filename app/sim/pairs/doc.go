// SPDX-License-Identifier: Apache-2.0

// Package pairs simulates an HA pair of ResourceManagers over a shared state, as tests: in virtual time, with drawn
// faults, each run repeatable by its seed. It runs the product's code: the decisions of package pair, the owner of
// package turn with the machine of package rm, and the lease, the log and the standby's copy of package redisstate.
// Only the drivers of goroutines, the Redis server, the nodes, the AMs and the clients are simulated.
//
// # What a run promises
//
//  1. No answer of a deposed ResourceManager leaves after its successor's first answer.
//  2. Each acknowledged submission, and each reported end of an application, is in the state of every later leader,
//     unless Redis lost it. Then the holder that was acknowledged it, or the standby that had copied it, says so.
//  3. A takeover continues exactly the entries of the state.
//  4. No container is granted or started twice, and no application has two AMs.
//  5. A takeover ends no running container.
//  6. After the last fault, one of the pair leads within two terms, and all applications end.
package pairs
