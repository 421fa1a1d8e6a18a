// SPDX-License-Identifier: Apache-2.0

// Package rpc serves ApplicationMasterProtocol to AMs with the sessions of package amrmproxy/server. It has no state.
// The AMRM token of the connection identifies the caller, and sessions answer calls asynchronously.
//
// Distributed scheduling is not supported: its protocol is unknown on this port, as on a ResourceManager without
// opportunistic containers.
package rpc
