// SPDX-License-Identifier: Apache-2.0

// Package rpcauth joins Kerberos to Hadoop RPC: it makes exchanges of package gssapi for servers and clients of package
// hrpc. A ResourceManager uses its server; no daemon uses its client yet.
package rpcauth
