// SPDX-License-Identifier: Apache-2.0

// Package moves records the moves of waiting applications in the state store and carries them out: from a member that
// is drained or loaded to one with free capacity, before any of their containers run
// (docs/adr/0021-moving-waiting-applications.md).
//
// A move is one document for each application, so that any router can continue a move that another began. Each step
// of it is made under a claim of its own (router.Mover), so two routers that carry out the same move do no harm; a
// lease avoids duplicate work. A move that has not happened after a while, or whose next home stops taking
// applications, is abandoned: the application stays where it was.
//
// Finished moves are stored in one document of the last Kept, for people, for the budget and for undoing them.
//
// A store that lost the record leaves an application on hold without a move. At intervals the loop checks the holds
// that members report, and mends those without a record in two checks (router.Mover.Mend).
package moves
