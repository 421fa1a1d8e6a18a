// SPDX-License-Identifier: Apache-2.0

// Package impersonation decides whether a proxy user may act for another user, by the rules of hadoop.proxyuser.*.
//
// It promises that a user without a rule acts for nobody else. The caller owes names that are proven, or trusted as the
// cluster's authentication says: Rules do not check who calls.
package impersonation
