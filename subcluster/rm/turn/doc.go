// SPDX-License-Identifier: Apache-2.0

// Package turn is the turn of a ResourceManager's owner: in which order its
// machine is told of what became durable, of time and of events, what of the
// machine's actions goes into the journal, and when answers may leave. It is pure;
// subcluster/rm/server and internal/app/sim run the same.
//
// The driver's duties, for each turn:
//
//  1. [Owner.Begin] with the time, the pause of our own process that was found,
//     if any, and the number of the transaction up to which the journal is durable.
//  2. For each batch of at most [MaxEvents] events: [Owner.Take], then [Owner.End].
//     What End passes to perform is done outside; it is never a save.
//  3. When End returns a number, commit the transaction, whose number that is,
//     and empty it. Transactions become durable in order.
//  4. Send the answers that End returned, after that. The others are held until
//     what they depend on is durable, and come out of a later End.
//
// An answer that must not be lost by a crash is held by [Owner.Hold], during the
// event that causes it.
package turn
