// SPDX-License-Identifier: Apache-2.0

// Package rpcauth joins Kerberos to Hadoop RPC: it makes exchanges of package gssapi for servers and clients of package
// hrpc. No daemon uses it yet; see package gssapi.
package rpcauth
