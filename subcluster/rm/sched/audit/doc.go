// SPDX-License-Identifier: Apache-2.0

// Package audit compares the books of a scheduler with sums over containers and asks, and checks that no free resources
// were kept from an ask. It knows amounts, names and numbers, and no scheduler: the caller passes both sides.
//
// Sums are one side of an account: of an application, a user, a queue or a node. Differ names the entries in which the
// books are wrong. A Ledger adds the truth up by owner. Ask.Takes is the promise of a scheduling cycle, written slowly
// and independently of the scheduler's own rule, so that an error in that rule is found.
//
// # Guarantees
//
//   - Differ returns "" only if all requested entries are equal, and names each one that is not.
//   - Ask.Takes depends only on the ask and the node.
//
// # The caller's duties
//
// The truth comes from containers and asks, not from the books. Limits and placement constraints are the scheduler's:
// the caller only passes asks that they permit.
package audit
