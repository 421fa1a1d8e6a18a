// SPDX-License-Identifier: Apache-2.0

// Package rpc serves ApplicationMasterProtocol to AMs with the sessions of package amrmproxy/server. It has no state.
// The AMRM token of the connection identifies the caller, and sessions answer calls asynchronously.
//
// DistributedSchedulingAMProtocol is unknown on this port: AMs do not use it. The proxy itself calls members by it.
package rpc
