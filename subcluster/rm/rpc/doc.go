// SPDX-License-Identifier: Apache-2.0

// Package rpc runs the machine of package rm as a daemon: it owns its
// goroutine, its journal and its tokens, starts masters on nodes, and serves
// YARN's four protocols to clients, masters, nodes and administrators.
//
//	door (connection's goroutine)      decode, check who asks, post, return ErrLater
//	owner (one at a time)              machine calls in batches; Save actions into one
//	                                   journal transaction; answers copied out
//	journal                            one sync for a batch or many; then Saved
//	responders (one for each core)     mint tokens, encode, send
//	launcher (bounded)                 startContainers and stopContainers on nodes
//
// The owner is a goroutine that wakes for what was posted and for timers, or the
// connection of a master that calls while nobody owns the machine.
//
// A node's heartbeat is decoded but for what its last one said in the same bytes
// of containers that run; see beat.go.
//
// What a client is told has happened is durable: submissions, kills and final
// states are answered after the journal's sync.
//
// Others (the REST door, a federation's heartbeat) read through [Daemon.Query],
// whose function the owner runs, and write through the methods named like the
// protocol's calls.
package rpc
