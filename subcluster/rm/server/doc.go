// SPDX-License-Identifier: Apache-2.0

// Package server runs the machine of package rm: it owns the machine's goroutine,
// its journal and its tokens, starts AMs on nodes, and offers what the protocols
// (rm/rpc, rm/rest) need as a Go API. The protocols decode, call and encode; they
// have no state.
//
//	protocol (connection's goroutine)  decode, check who asks, Begin an Op
//	owner (one at a time)              machine calls in batches; Save actions into one
//	                                   journal transaction; answers copied out
//	journal                            one sync for a batch or many; then Saved
//	responders (one for each core)     mint tokens, encode, send
//	launcher (bounded)                 startContainers and stopContainers on nodes
//
// The owner is a goroutine that wakes for what was posted and for timers, or the
// connection of an AM that calls while nobody owns the machine (owner.go).
//
// What a client is told has happened is durable: submissions and final states
// are answered after the journal's sync. The order of a turn, what is saved and what
// waits for it are decided by package turn, which the simulator runs too
// (owner.go, durable.go).
//
// The Go API, in reading order: op.go (how a call is made), applications.go,
// am.go, nodes.go, admin.go, delegation.go; access.go (who may do what); mint.go
// and secrets.go (tokens); cache.go and reports.go (encoded answers that are
// given again).
package server
