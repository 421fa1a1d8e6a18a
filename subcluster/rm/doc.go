// SPDX-License-Identifier: Apache-2.0

// Package rm is the ResourceManager of one subcluster as a pure machine. It has the life cycles of applications,
// attempts, containers and nodes, their deadlines, and the state that must be durable. It calls package sched, which
// decides allocations. It reads no clock, opens no socket, takes no lock and starts no goroutine: calls pass events
// and their time, and return answers and actions. The daemon, the demo and the simulator run this same code.
//
// # The caller's duties
//
//  1. One goroutine owns the Machine. Every method takes the time of the
//     event; time must not run backwards (the machine replaces an earlier time by the
//     latest one).
//  2. After each call, or a batch of calls, take Actions and perform them in
//     order. Save actions must be durable before Saved(seq) is called; only then
//     the machine continues (Config.Volatile skips them: nothing is saved).
//  3. Call Tick at NextDeadline, not later than the required precision.
//  4. The machine owns an Answer, and the next Allocate of the same attempt
//     overwrites it; encode it before that, or Clone it.
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
// An application embeds sched.App, a node embeds sched.Node: the scheduler's part of them. A container belongs to the
// machine; for the scheduler it is an amount at a place. Every call ends with settle: the scheduler's cycle runs, and
// its grants are booked.
//
// Machine has the calls, Reader the questions. The state is divided among parts, one owner each, which machine.go has
// on one page: the lives of applications, attempts, containers and nodes, and smaller ones
// (docs/adr/0043-parts-of-the-machine.md).
//
// The files, in reading order: events.go and answers.go (input and output), properties.go (labels and attributes as
// values), machine.go, app*.go, attempt*.go, am.go, allocate*.go, container.go, update.go, node*.go, logs.go,
// labels.go, label_asks.go, attributes.go, placing.go, timers.go, recover.go, queues.go, report.go, audit.go.
// prefetch.go reads memory ahead.
//
// Package queues defines the queue specification; queueconf and placement, which read it from Hadoop's files, are not
// imported here.
//
// Sources: the protocol facts come from YARN's ApplicationMasterProtocol and ResourceTracker.
package rm
