// SPDX-License-Identifier: Apache-2.0

// Package snapshot shares lists of the members' data among all viewers of a page.
//
// It decides when the members are asked, and how long a viewer waits. Lists have a list for each key, since members
// decide which items a user may see; a list that is the same for all viewers has one key.
//
// It promises:
//   - The number of viewers does not matter: for a key, members are asked at most once per Config.Fresh, and refreshes
//     take at most a tenth of the time, or a third of it after changes.
//   - If a member does not answer, its previous part stays in the list, with its age and the error.
//   - Only the first viewer of a key waits for the members. Others get the last list if a refresh takes longer than
//     Config.Wait.
//   - Memory is bounded: at most 32 keys, the last used ones, none without a viewer for more than a minute.
//
// The caller owes a Config.Ask that returns, and that asks as the user of the key. It must not change parts, items or
// results.
package snapshot
