// SPDX-License-Identifier: Apache-2.0

// Package rpc runs the machine of package rm as a daemon: it owns its
// goroutine, its journal and its tokens, starts masters on nodes, and serves
// YARN's four protocols to clients, masters, nodes and administrators.
//
//	door (connection's goroutine)      decode, check who asks, post, return ErrLater
//	owner (one goroutine)              machine calls in batches; Save actions into one
//	                                   journal transaction; answers copied out
//	journal                            one sync for a batch or many; then Saved
//	responders (one for each core)     mint tokens, encode, send
//	launcher (bounded)                 startContainers and stopContainers on nodes
//
// A node's heartbeat is decoded but for what its last one said in the same bytes
// of containers that run; see beat.go.
//
// What a client is told has happened is durable: submissions, kills and final
// states are answered after the journal's sync.
//
// Others (the REST door, a federation's heartbeat) read through [Daemon.Query],
// which runs a function in the owner's goroutine, and write through the methods
// named like the protocol's calls.
package rpc
