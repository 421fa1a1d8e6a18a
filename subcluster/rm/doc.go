// SPDX-License-Identifier: Apache-2.0

// Package rm is the ResourceManager of one subcluster as a pure machine: the life cycles of its applications,
// attempts, containers and nodes, their deadlines, and the state that must be durable. It drives package sched, which
// decides allocations. It reads no clock, opens no socket, takes no lock and starts no goroutine: events and their
// time come in by calls, answers and actions go out. The daemon, the demo and the simulator run this same code.
//
// # The caller's duties
//
//  1. One goroutine owns the Machine. Every method takes the time of the
//     event; time must not run backwards (an earlier time counts as the
//     latest seen).
//  2. After each call, or a batch of calls, take Actions and perform them in
//     order. Save actions must be durable before Saved(seq) is called; only then
//     the machine goes on (Config.Volatile skips them: nothing is saved).
//  3. Call Tick at NextDeadline, not later than the required precision.
//  4. An Answer belongs to the machine and is overwritten by the next Allocate
//     of the same attempt; encode it before that, or Clone it.
//  5. Views (App, Node, Queue, ...) are copies and stay valid.
//
// Equal calls at equal times lead to equal states, byte for byte (AppendState).
//
// # The path of a call
//
//	event ──► life cycles (app*.go, attempt*.go, container.go, node*.go)
//	             │ asks, releases, nodes' free resources, which applications may get containers
//	             ▼
//	          sched ──► grants ──► book (container.go): containers, numbers, answers
//
// An application embeds sched.App, a node sched.Node: the scheduler's part of them. A container belongs to the
// machine; the scheduler knows it as an amount in a place. Every call ends with settle: the scheduler's cycle runs,
// and its grants are booked.
//
// The files, in reading order: events.go and answers.go (input and output), machine.go, app*.go, attempt*.go, am.go,
// allocate*.go, container.go, update.go, node*.go, logs.go, labels.go, label_asks.go, attributes.go, placing.go,
// timers.go, recover.go, queues.go, report.go, audit.go. prefetch.go reads memory ahead.
//
// The queue specification is package queues; queueconf and placement read it from Hadoop's files and are not imported
// here.
//
// Sources: the protocol facts are from YARN's ApplicationMasterProtocol and ResourceTracker.
package rm
