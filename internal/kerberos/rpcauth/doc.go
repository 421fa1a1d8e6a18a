// SPDX-License-Identifier: Apache-2.0

// Package rpcauth joins Kerberos to Hadoop RPC: it makes exchanges of package gssapi for servers and clients of package
// hrpc. ResourceManagers and routers use its server, routers and AM-RM proxies its client.
package rpcauth
