// SPDX-License-Identifier: Apache-2.0

// Package server carries out the decisions of package router. It has the view, the clients of the members and the
// router's memory. It forwards submissions, finds homes, and calls several members at once. router/rpc, router/rest
// and the dashboard are codecs that share one Server, which uses neither protobuf nor JSON.
//
// Operations that both protocols have are functions over a codec's calls: Submit, Report, Containers, Change, Signal,
// OrderNodes, AtNode, Reserve. A codec decodes a request, calls the operation, and encodes the result. A user's call is
// forwarded in its own protocol. A router's own calls are a Member's, whose two kinds are creel's and Hadoop's.
//
// Its guarantees:
//
//  1. A submission is forwarded as the client sent it.
//  2. A recently used home of an application is found without the store. If the home no longer has the application,
//     the store is read again before the caller gets an answer (AtHome).
//  3. A call to several members is sent to all at the same time, and waits for each no longer than its kind of call
//     allows (Ask).
//  4. A kill reaches every member that may run a UAM of the application (Change).
//
// A Server starts no goroutine that outlives a call, and only its Pool must be closed. It does not import the store:
// Homes has the methods that it needs.
package server
