// SPDX-License-Identifier: Apache-2.0

// Package operator changes the federation's own records on behalf of an administrator: a member is drained, taken
// out, removed; a queue's policy is written and restored; an application's record is deleted. The protocols of a
// router (router/rest, router/rpc) are codecs over it, and so both obey the same rules.
//
// Only administrators (yarn.admin.acl) can change anything. Each change is one compare-and-set of the state store, so
// that of two administrators the second learns of the first. A change that would break a guarantee of the federation
// is rejected with the reason: a member that still sends heartbeats is not deregistered, the record of an application
// that its home still has is not deleted.
//
// The caller passes the user's name, authenticated as well as its protocol can, and writes the audit line.
package operator
