// SPDX-License-Identifier: Apache-2.0

// Package client has the calls that a router makes to members for itself: it checks for an application, disowns it,
// moves it, and carries out recorded changes. Calls of users are forwarded by packages rpc and rest.
//
// Every function makes one call to one member, at most one more where its comment names it. Errors are those of
// package remote. Callers bound the time by the context, and repeat.
package client
