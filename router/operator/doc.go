// SPDX-License-Identifier: Apache-2.0

// Package operator changes the federation's own records in the name of an
// administrator: a member is drained, taken out, removed; a queue's policy is
// written and put back; an application's record is deleted. The protocols of a
// router (router/rest, router/rpc) are codecs over it, and so both obey the same
// rules.
//
// It promises that nobody but an administrator (yarn.admin.acl) changes anything,
// that each change is one compare-and-set of the state store, so that of two
// administrators one is told of the other, and that what would break a promise of
// the federation is refused with the reason: a member that still sends heartbeats is
// not deregistered, the record of an application that its home still has is not
// deleted.
//
// The caller says who asks, by a name that it has authenticated as well as its
// protocol can, and writes the line of audit.
package operator
