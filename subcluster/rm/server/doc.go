// SPDX-License-Identifier: Apache-2.0

// Package server runs the machine of package rm. It owns the machine's goroutine, its journal and its tokens, starts
// AMs on nodes, and offers a Go API to the protocols (rm/rpc, rm/rest). The protocols decode, call and encode; they
// have no state.
//
//	protocol (connection's goroutine)  decode, identify the caller, Begin an Op
//	owner (one at a time)              machine calls in batches; Save actions into one
//	                                   journal transaction; results copied out
//	journal                            one sync for a batch or many; then Saved
//	responders (one for each core)     mint tokens, encode, send
//	launcher (bounded)                 startContainers and stopContainers on nodes
//
// The owner is one of two. It is a goroutine that wakes for posted events and for timers, or the connection of an AM
// that calls while the machine has no owner (owner.go).
//
// Everything reported to a client is durable: submissions and final states are answered after the journal's sync.
// Package turn, which the simulator runs too, decides the order of a turn, the state to save, and the responses that
// wait for it (owner.go, durable.go).
//
// The Go API, in reading order: op.go (calls), applications.go, am.go, nodes.go, admin.go, delegation.go; access.go
// (permissions); mint.go and secrets.go (tokens); cache.go and reports.go (cached encoded responses).
package server
