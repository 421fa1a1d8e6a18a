// SPDX-License-Identifier: Apache-2.0

// Package moves keeps the moves of waiting applications on record in the state store and
// has them carried out: from a member that is drained or loaded to one with room, before
// anything of them runs (docs/adr/0021-moving-waiting-applications.md).
//
// A move is one document for each application, so that what one router began any other
// goes on with. Each step of it is made under a claim of its own (router.Mover), so two
// routers that carry out the same move do no harm; a lease keeps them from getting in each
// other's way. A move that has not happened after a while, or whose next home stops
// taking applications, is given up: the application stays where it was.
//
// What is over is kept in one document of the last Kept, for people, for the budget and
// for undoing it.
//
// A store that lost the record leaves an application that is held, and nobody who moves
// it. Every so often the loop looks through what members hold, and mends what has no
// record in two looks (router.Mover.Mend).
package moves
