// SPDX-License-Identifier: Apache-2.0

// Package impersonation decides whether a proxy user may act for another user, by the rules of hadoop.proxyuser.*.
//
// It promises that a user without a rule may act for no other user. The caller owes authenticated names, or, with
// simple authentication, the names that clients sent: Rules authenticate no caller.
package impersonation
