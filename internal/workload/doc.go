// SPDX-License-Identifier: Apache-2.0

// Package workload turns recorded days into jobs with tasks, queues and users,
// and plays an application's AM as a pure machine.
//
// What it decides: how many tasks a recorded job had, how long each ran, who
// submitted it to which queue, and in which order its AM asks for
// containers. Everything follows from the trace and one seed; the same two give
// the same jobs to the byte, in the demo over sockets and in the simulator.
//
// What it promises: a task's duration depends only on (seed, job, kind, index),
// never on the order in which tasks are looked at. An AM asks as a MapReduce
// AM does: maps at priority 20, reduces at 10 once enough maps are done
// (slow start), failed maps again at 5; its asks are absolute and it sends only
// those that changed (ApplicationMasterProtocol.allocate).
//
// What the caller owes: to deliver each event once and in order, to start the
// containers it is told to start, and to give back those it is told to release.
package workload
