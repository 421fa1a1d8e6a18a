// SPDX-License-Identifier: Apache-2.0

// Package journal is the durable state of a ResourceManager: an ordered map from keys to values, written as a log
// with group commit.
//
// The caller's duties, in order:
//
//  1. Open the directory and read every surviving entry with Each.
//  2. Start Run in a separate goroutine; only Run writes the files.
//  3. Commit a transaction, and act on it only after its done function was
//     called with nil. Transactions become durable in the order of Commit.
//  4. Stop after the first error. A disk that has once failed to sync may have
//     lost earlier acknowledged writes, so every later transaction fails too.
//     Open the directory again.
//
// All transactions that arrive while the disk is busy share the next write and the next sync, so that one sync makes
// many transactions durable.
//
// # Files
//
// The directory holds segments named by an increasing number. A segment is a header followed by blocks. A block has
// the content of one write, its number, its length and a checksum. A block is written only after the previous one was
// synced, so a crash can damage only the last block of the last segment. Open cuts off that damage. A bad block
// before a good one results from a faulty disk or an edit, not from a crash, and Open rejects it with [ErrCorrupt].
// [Repair] salvages all readable blocks.
//
// When more than half of the bytes are dead, the sealed segments are copied into one base segment, which replaces all
// segments before it.
package journal
