// SPDX-License-Identifier: Apache-2.0

// Package durability decides which answers of a ResourceManager may leave, and
// when: an answer that tells of something that happened waits until the
// machine's saves of it are in the journal. Package turn is its driver, for the daemon and the
// simulator.
//
// What the driver does, each turn:
//
//  1. It takes events. An answer that must wait is given to Hold.
//  2. It performs the machine's actions. Each Save action is written into the
//     turn's transaction, and its number given to Saved.
//  3. EndTurn numbers the transaction, which the driver commits; transactions
//     become durable in their order. Answers that wait for nothing leave.
//  4. When the journal reports a transaction durable the driver calls Durable
//     with its number, then Machine.Saved with the number it returns, and only
//     then lets the freed answers leave.
//
// A failed commit is never reported: what waits then waits for ever, and the
// driver ends the process.
package durability
