// SPDX-License-Identifier: Apache-2.0

// Package workload converts recorded days to jobs with tasks, queues and users, and simulates an application's AM
// without I/O.
//
// It decides the number of a job's tasks, their durations, the job's user and queue, and the order of its AM's asks.
// Everything follows from the trace and one seed. The same two yield the same jobs to the byte, in the demo over
// sockets and in the simulator.
//
// It guarantees that a task's duration depends only on (seed, job, kind, index), never on the order of access. An AM
// asks like a MapReduce AM. It asks for maps at priority 20, for reduces at 10 once enough maps are done (slow start),
// and for failed maps again at 5. Its asks are absolute, and it sends only changed ones
// (ApplicationMasterProtocol.allocate).
//
// The caller must deliver each event once and in order. It must start and release containers as ordered.
package workload
