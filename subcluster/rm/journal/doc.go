// SPDX-License-Identifier: Apache-2.0

// Package journal keeps what a ResourceManager must not forget: a durable
// ordered map from keys to values, written as a log with group commit.
//
// The caller's duties, in order:
//
//  1. Open the directory and read every surviving entry with Each.
//  2. Start Run in a goroutine of its own; it is the only writer of the files.
//  3. Commit a transaction and act on it only when its done function has been
//     called with nil. Transactions become durable in the order of Commit.
//  4. After the first error stop: a disk that has failed to sync once cannot be
//     trusted to hold what it acknowledged before, so every later transaction
//     fails too. Open the directory again.
//
// All transactions that arrive while the disk is busy share the next write and
// the next sync, so durability costs one sync for a crowd and not one for each.
//
// # Files
//
// The directory holds segments named by an increasing number. A segment is a
// header and then blocks; a block is what one write put down, and carries its
// number, its length and a checksum. A block is written only after the one
// before it was synced, so a crash can damage nothing but the last block of the
// last segment: that damage is cut off at Open. A bad block with a good one
// behind it is no crash but a lying disk or a careless hand, and Open refuses
// it with [ErrCorrupt]; [Repair] salvages what still reads.
//
// When more than half of the bytes are dead, the sealed segments are copied
// into one base segment, which replaces all segments before it.
package journal
