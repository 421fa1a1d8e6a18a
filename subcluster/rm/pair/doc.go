// SPDX-License-Identifier: Apache-2.0

// Package pair decides which ResourceManager of an HA pair is active. A [Machine] is one of the pair: events and their
// time in, actions with their reasons out. It has no clock and no connection. Package pair/server drives it.
//
//	Standby   ── lease won ──►  Becoming  ── services serve ──►  Active
//	   ▲                            │                              │
//	   └──── services ended ────  Resigned  ◄── lease lost ────────┘
//
// # Promises
//
//  1. The services begin only under a lease, and one of the pair has it at a time.
//  2. Leads is false before the lease ends at the store, however late an answer arrives. The term counts from before
//     the question was sent, less a margin.
//  3. A lease is released only after the services have ended.
//  4. With automatic failover a standby claims the lease as soon as it is free. Otherwise only an order claims it.
//
// The lease bounds the time in which a former leader answers. It does not protect the state: the state's epoch does.
//
// # The driver's duties
//
//  1. Perform the actions of each event in their order, and report each result as an event.
//  2. Call Tick at Deadline.
//  3. Answer nothing while Leads is false.
package pair
