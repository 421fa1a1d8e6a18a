// SPDX-License-Identifier: Apache-2.0

// Package turn is one turn of a ResourceManager's owner. It defines the order in which the machine gets durable
// transactions, time and events. It also decides which actions go into the journal, and when responses may be sent.
// It is pure; subcluster/rm/server and app/sim run the same code.
//
// The driver's duties, for each turn:
//
//  1. [Owner.Begin] with the time, the detected pause of this process, if any,
//     and the number of the last durable transaction of the journal.
//  2. For each batch of at most [MaxEvents] events: [Owner.Take], then [Owner.End].
//     The driver carries out the actions that End passes to perform. None is a save.
//  3. When End returns a number, commit the transaction under that number and
//     empty it. Transactions become durable in order.
//  4. After that, send the responses that End returned. The others wait until
//     their saves are durable; a later End returns them.
//
// A response that a crash must not lose is held by [Owner.Hold] during the event that causes it.
package turn
