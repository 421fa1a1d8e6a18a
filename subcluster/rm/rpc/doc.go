// SPDX-License-Identifier: Apache-2.0

// Package rpc serves a ResourceManager (package server) over Hadoop RPC: YARN's four protocols to clients, AMs, nodes
// and administrators, and HAServiceProtocol. Each method decodes its request, performs one Op of the server without
// holding a goroutine (later.go), and encodes the response.
//
// It has no state except the heartbeat decoder's cache (heartbeat.go).
package rpc
