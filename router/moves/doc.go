// SPDX-License-Identifier: Apache-2.0

// Package moves records the moves of waiting applications in the state store and carries them out. An application
// moves from a drained or loaded member to a member with free capacity, before any of its containers run
// (docs/adr/0021-moving-waiting-applications.md).
//
// Each move is a document of its application, so that any router can continue it. Each step has its own claim
// (router.Mover), so two routers may carry out the same move without harm; a lease avoids duplicate work. A move is
// abandoned if it takes longer than Patience, or if its next home stops accepting applications. Then the application
// stays at its home.
//
// The last Kept finished moves are in one document, for people, for the budget and for undoing them.
//
// If the store loses the record, the application stays on hold without a move. At intervals the loop checks the holds
// that members report. It mends holds that have no record in two successive checks (router.Mover.Mend).
package moves
