// SPDX-License-Identifier: Apache-2.0

// Package login logs a daemon in at the members of a federation, and names the user for whom it calls. Routers and
// AM-RM proxies use it.
//
// Without Kerberos the daemon's name and the user's are sent without proof, as Hadoop's simple authentication does.
// With Kerberos the daemon logs in by its keytab, and acts for the user as a proxy user: hadoop.proxyuser.* of the
// member decides whether it may.
//
// # Promises
//
//   - With Kerberos no name is sent without a ticket. A member that asks for none gets no call.
//   - A ticket goes only to a server whose principal fits the setting, at the host that the member's record names.
//   - By HTTP the user of a call is the query's user.name; members get it as doAs.
//
// # The caller owes
//
// Users whose names it has checked: a member believes the daemon.
package login
