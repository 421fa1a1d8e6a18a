// SPDX-License-Identifier: Apache-2.0

// Package router decides the destination of submissions, and merges the answers of many ResourceManagers into one.
//
// It chooses an application's home by the queue's policy over an immutable view. It decides when a submission leaves
// a failed home for the next one. It has the rules by which lists, reports and metrics of several members merge.
//
// Its guarantees:
//
//  1. An application has one home. The router claims the home in the store before it forwards the submission. The
//     first claim wins, and every router forwards to the winner. A repeated submission, through this router or
//     another, goes to the same home and succeeds.
//  2. A home is left only behind a fence. There are two kinds. In the first, this router's submission was the only
//     possible one (it has the only claim) and certainly failed. In the second, the member disowned the application:
//     it does not have it, and rejects it for ever under the claims made so far. The member makes this durable before
//     it answers. So a request still in a socket buffer after its caller timed out is rejected when it arrives.
//     Hadoop's ResourceManagers cannot disown. There an unclear submission keeps its home, and the client gets an
//     error that it may retry. An application waits rather than runs twice.
//  3. There is no I/O before the claim: the view is an atomic pointer, and the policy is pure.
//  4. Every choice has a reason, which is stored for `creel app why`.
//  5. A merged answer never hides a missing member: it lists the member and the cause (MissingMember).
//
// The caller provides a Submission with an application id from one of the members, and a deadline in the context. Its
// forward and disown functions return errors of the kinds in package creel (see Verdict).
//
// The package starts no goroutine and opens no socket. That is the part of router/rpc, router/rest and
// subcluster/remote.
package router
