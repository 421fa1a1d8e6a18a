// SPDX-License-Identifier: Apache-2.0

// Package rm is the ResourceManager of one subcluster as a pure machine: the
// life cycles of its applications, attempts, containers and nodes, their
// deadlines, and what must be durable. Who gets what where is decided by package
// sched, which it drives. It reads no clock, opens no socket, takes no lock and
// starts no goroutine: events and their time come in by calls, answers and actions
// go out. The daemon, the demo and the simulator run this same code.
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
//     of the same attempt; encode it before that, or Clone it.
//  5. Views (App, Node, Queue, ...) are copies and stay valid.
//
// Equal calls at equal times give equal states, byte for byte (AppendState).
//
// # How a call goes
//
//	event ──► life cycles (app*.go, attempt*.go, container.go, node*.go)
//	             │ asks, releases, nodes' room, who may get containers
//	             ▼
//	          sched ──► grants ──► book (container.go): containers, numbers, answers
//
// An application embeds sched.App, a node sched.Node: what the scheduler knows of
// them. A container is the machine's; the scheduler knows it as an amount in a
// place. Every call ends with settle: the scheduler's cycle runs, and what it
// granted is booked.
//
// The files, in reading order: events.go and answers.go (what goes in and out),
// machine.go, app*.go, attempt*.go, am.go, allocate*.go, container.go, update.go,
// node*.go, logs.go, labels.go, label_asks.go, attributes.go, placing.go, timers.go, recover.go, queues.go,
// report.go, audit.go. Reading ahead is in prefetch.go.
//
// The queue specification is package queues; queueconf and placement read it from
// Hadoop's files and are not imported here.
//
// Sources: the protocol facts are those of YARN's ApplicationMasterProtocol
// and ResourceTracker.
package rm
