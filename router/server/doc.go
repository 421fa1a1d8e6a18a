// SPDX-License-Identifier: Apache-2.0

// Package server carries out the decisions of package router: it has the view, the clients of the members and the
// router's memory, forwards submissions, finds homes, and asks several members at once. router/rpc, router/rest and
// the dashboard are codecs over one Server and share it; it knows neither protobuf nor JSON.
//
// Its guarantees:
//
//  1. A submission is forwarded as the client sent it.
//  2. The home of an application is found without the store when it was used recently; if a home does not know the
//     application any more, the store is read once more before the caller gets an answer (AtHome).
//  3. A question to several members is sent to all at once, and waits for each no longer than its kind of call allows
//     (Ask).
//  4. A kill reaches every member that may run a UAM of the application (Kill).
//
// A Server starts no goroutine that outlives a call, and only its Pool need be closed. It does not import the store:
// router.Homes are the methods it needs.
package server
