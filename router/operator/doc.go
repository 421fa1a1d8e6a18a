// SPDX-License-Identifier: Apache-2.0

// Package operator changes the federation's records for an administrator. It drains, deregisters and removes members,
// writes and restores policies, and deletes applications' records. The protocols of a router (router/rest,
// router/rpc) are codecs over it, so both apply the same rules.
//
// Only administrators (yarn.admin.acl) may make changes. Each change is one compare-and-set of the state store, so if
// two administrators make changes, the second gets an error. A change that would break a guarantee of the federation
// is rejected with the reason. For example, a member that still sends heartbeats is not deregistered, and an
// application's record is not deleted while its home has the application.
//
// The caller authenticates the user as its protocol allows, passes the user's name, and writes the audit line.
package operator
