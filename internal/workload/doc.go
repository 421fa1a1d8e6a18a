// SPDX-License-Identifier: Apache-2.0

// Package workload turns recorded days into jobs with tasks, queues and users, and simulates an application's AM
// without I/O.
//
// It decides how many tasks a recorded job had, how long each ran, which user submitted it to which queue, and in
// which order its AM asks for containers. Everything follows from the trace and one seed; the same two yield the same
// jobs to the byte, in the demo over sockets and in the simulator.
//
// It guarantees that a task's duration depends only on (seed, job, kind, index), never on the order of access. An AM
// asks as a MapReduce AM does: maps at priority 20, reduces at 10 once enough maps are done (slow start), failed maps
// again at 5. Its asks are absolute and it sends only changed ones (ApplicationMasterProtocol.allocate).
//
// The caller must deliver each event once and in order, start the containers it is ordered to start, and release
// those it is ordered to release.
package workload
