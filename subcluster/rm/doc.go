// SPDX-License-Identifier: Apache-2.0

// Package rm is the ResourceManager of one subcluster as a pure machine: its
// queues, applications, nodes and containers, and the decision who gets what
// where. It reads no clock, opens no socket, takes no lock and starts no
// goroutine: events and their time come in by calls, answers and actions go
// out. The daemon, the demo and the simulator run this same code.
//
// # What the caller does
//
//  1. One goroutine owns the Machine. Every method takes the time of the
//     event; time must not run backwards (an earlier time counts as the
//     latest seen).
//  2. After each call, or a batch of calls, take Actions and perform them in
//     order. Save actions must be durable before Saved(seq) is called; the
//     machine goes on only then (Config.Volatile skips them: nothing is kept).
//  3. Call Tick at NextDeadline, not later than the precision wanted.
//  4. An Answer belongs to the machine and is overwritten by the next Allocate
//     of the same attempt; encode it before that.
//  5. Views (App, Node, Queue, ...) are copies and stay valid.
//
// Equal calls at equal times give equal states, byte for byte (AppendState).
//
// # How it decides
//
// Placement is driven by events, not by heartbeats of nodes: an ask is tried
// when it arrives (its containers go home in the same Allocate answer), and
// room is offered when it appears. Between two calls no ask waits that both
// its limits and some node would admit, other than one that delay scheduling, a
// reservation, or an ask before it that waits for a queue's maximum holds back.
//
//	Allocate ─ asks change ──► serve(app) ─┐
//	release, limit, node ────► pump ───────┼─► place: limits up the tree,
//	                           tree order  │   then a node from the index
//	                           over active ┘
//
// The queue specification is package queues; queueconf and placement read it from
// Hadoop's files and are not imported here.
//
// The files, in reading order: events.go and answers.go (what goes in and out), machine.go, node.go and index.go (room),
// ask.go (what is wanted), queue.go, limits.go and order*.go (who is next),
// passing.go (who may pass whom), place.go (where), container.go, attempt.go,
// app.go (the life cycles), why.go, whatif.go and audit.go.
//
// Sources: the protocol facts are those of YARN's ApplicationMasterProtocol
// and ResourceTracker; sharing follows Hadoop's documented CapacityScheduler
// and FairScheduler keys, Dominant Resource Fairness (Ghodsi et al., NSDI
// 2011), hierarchical DRF (Bhattacharya et al., SoCC 2013) and delay
// scheduling (Zaharia et al., EuroSys 2010).
package rm
