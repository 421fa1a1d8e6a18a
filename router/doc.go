// SPDX-License-Identifier: Apache-2.0

// Package router decides where a submission goes and how the answers of many ResourceManagers become one.
//
// Its decisions: which subcluster is an application's home (by the queue's policy over an immutable view), when to
// leave a failed home for the next one, and by which rule lists, reports and metrics of several members merge.
//
// Its guarantees:
//
//  1. One application, one home. The home is claimed in the store before the submission is forwarded; the first claim
//     wins, and every router forwards to the winner. A repeat of a submission, through this router or another, goes
//     to the same home and succeeds.
//  2. A home is left only behind a fence, of which there are two kinds. In the first, this router's submission was
//     the only one that can have gone there (it holds the only claim) and it certainly failed. In the second, the
//     member disowned the application: it does not have it, and rejects it for ever under the claims made so far,
//     which it wrote down before it said so. So a request still in a socket buffer after its callers gave up runs
//     nowhere when it arrives. Hadoop's ResourceManagers cannot disown: there an unclear submission stays, and the
//     client gets an error it may retry. An application waits rather than runs twice.
//  3. No I/O before the claim: the view is an atomic pointer, the policy pure.
//  4. Every choice carries its reason, stored for `why`.
//  5. A merged answer never hides a missing member: Missing names it and the cause.
//
// The caller must provide a Submission whose application id came from one of the members; forward and disown
// functions that return errors of the kinds in package creel (see Verdict); a deadline in the context.
//
// The package starts no goroutine and opens no socket; router/rpc, router/rest and subcluster/remote do.
package router
