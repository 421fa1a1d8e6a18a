// SPDX-License-Identifier: Apache-2.0

// Package rpc serves ApplicationMasterProtocol to AMs, over the sessions of package amrmproxy/server. It has no
// state: the AMRM token of the connection identifies the caller, and calls are answered by their session later.
//
// Distributed scheduling is not offered: its protocol is unknown on this port, as on a ResourceManager that has
// opportunistic containers switched off.
package rpc
