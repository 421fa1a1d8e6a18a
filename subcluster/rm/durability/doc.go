// SPDX-License-Identifier: Apache-2.0

// Package durability decides when responses of a ResourceManager may be sent. A response that reports an event waits
// until the journal has the machine's saves of that event. Package turn calls it, for the daemon and the simulator.
//
// The driver's steps, each turn:
//
//  1. It takes events and passes each response that must wait to Hold.
//  2. It performs the machine's actions. It writes each Save action into the
//     turn's transaction and passes its number to Saved.
//  3. EndTurn numbers the transaction, and the driver commits it. Transactions
//     become durable in their order. Responses that wait for nothing are sent.
//  4. When the journal reports a transaction durable, the driver calls Durable
//     with its number, then Machine.Saved with the number that Durable returned.
//     Only then it sends the freed responses.
//
// A failed commit is never reported: responses that wait for it are never sent, and the driver ends the process.
package durability
