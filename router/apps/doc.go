// SPDX-License-Identifier: Apache-2.0

// Package apps is the router's list of the applications of all members, for creel's own views: the native API, the
// dashboard, metrics, and look-ups of homes while the store is away. YARN's lists are not made of it
// (docs/adr/0036-one-copy-of-members-data.md).
//
// It decides, for each member, how its applications are fetched. A member that publishes changes sends all fields of
// each changed application, and its access list, to the router as itself. These rows are in memory once, for all
// viewers. Members that run Hadoop's ResourceManager publish none; they are asked for a list for each viewer, and only
// they. It also decides how the reports of an application from several members become one row, which rows match a
// filter, their order, and their counts.
//
// It promises:
//   - Rights are checked when the list is read. A viewer sees the fields of a row only if its home's access list allows
//     it, or if its home sent them for this viewer. No order, count or cursor reveals a guarded field.
//   - Viewers cost members that publish changes no calls. A member without changes is asked at most once a second for
//     a viewer.
//   - Memory is bounded by what members list: a row of about 500 bytes for each application, and the rows of members
//     without changes for each of the last 32 viewers. These are dropped after a minute without a request.
//   - Rows do not change after they are made: a View stays valid.
//
// The caller owes a Config whose Ask calls members within a deadline, and List.Run in a goroutine, without which the
// first viewer after a pause waits for the members.
package apps
