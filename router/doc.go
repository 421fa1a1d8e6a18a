// SPDX-License-Identifier: Apache-2.0

// Package router decides where a submission goes and how the answers of many
// ResourceManagers become one.
//
// What it decides: which subcluster is an application's home (by the queue's
// policy over an immutable view), when a failed home is left for the next one,
// and by which rule lists, reports and metrics of several members merge.
//
// What it promises:
//
//  1. One application, one home. The home is claimed in the store before the
//     submission is forwarded; whoever claimed first wins, and every router
//     forwards to the winner. A repeat of a submission, through this router or
//     another, goes to the same home and is success.
//  2. A home is left only behind a fence. Either ours was the only submission
//     that can have gone there (we hold the only claim) and it surely failed, or
//     the member disowned the application: it does not have it, and refuses it
//     for ever under the claims made so far, which it wrote down before it said
//     so. So a submission that lies in a socket while everybody gives it up runs
//     nowhere when it arrives. Hadoop's ResourceManagers cannot disown: there an
//     unclear submission stays, and the client gets an error it may retry. An
//     application waits rather than runs twice.
//  3. No I/O before the claim: the view is an atomic pointer, the policy pure.
//  4. Every choice carries its reason, kept for `why`.
//  5. A merged answer never hides a missing member: Missing says who and why.
//
// What the caller owes: a Submission whose application id came from one of the
// members; forward and disown functions that return errors of the kinds in
// package creel (see Verdict); a deadline in the context.
//
// The package starts no goroutine and opens no socket; router/rpc, router/rest
// and subcluster/remote do.
package router
