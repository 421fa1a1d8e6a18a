// SPDX-License-Identifier: Apache-2.0

// Package groups finds the groups of users for access lists and placement rules, by a [Mapping] such as [OfMachine] or
// a directory.
//
// It decides which groups are used: those of the last good lookup, for ten times Config.Keep at most.
//
// # Promises
//
//   - No lock is held while a lookup runs, and lookups of one user at the same time are one.
//   - A caller of [Groups.Of] waits for a lookup at most ten seconds. [Groups.Known] never waits.
//   - A user whose groups are unknown has none. After [Groups.Forget] groups from before are not used.
//
// # The caller owes
//
// A call of Of where a request arrives, before an owner of state calls Known.
package groups
