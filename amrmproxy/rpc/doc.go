// SPDX-License-Identifier: Apache-2.0

// Package rpc runs the AM-RM proxy: it drives the sessions of package
// amrmproxy, serves ApplicationMasterProtocol to masters, and speaks for them
// to the ResourceManagers of the federation.
//
//	door      (connection's goroutine)   who is it? post, answer later
//	session   (one goroutine each)       Step, and perform the actions:
//	  Send    (a goroutine for the call) to home with the master's own token, to others with the twin's
//	  Save    ( " )                      the spread, sealed, in the store
//	  Launch  ( " )                      submit unmanaged, wait, fetch the token
//	  Drop    ( " )                      kill
//
// # Who a master is
//
// A master shows the AMRM token that its ResourceManager gave it. The proxies
// know the ResourceManagers' keys: each publishes those it accepts, sealed with
// the cluster's secret, through the store (PublishKeys, KeyBook). The key that
// signed the token tells which member is the attempt's home. So neither a
// NodeManager nor a second token stands between.
//
// Distributed scheduling is not offered: its protocol is unknown on this port,
// as on a ResourceManager that has opportunistic containers switched off.
package rpc
