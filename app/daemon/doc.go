// SPDX-License-Identifier: Apache-2.0

// Package daemon runs creel's daemons. A Service is assembled (ports bound, nothing running), started, watched until
// a signal or a failure, drained and released.
//
// Its subpackages:
//
//	build       the version
//	health      /livez, /readyz, /metrics and /version
//	webserver   a web port: limits, simple authentication, profiles
//	logs        the process's log
//	tracing     export of spans
//	role        a router, a proxy, a ResourceManager, simulated nodes and an
//	            agent, each made from settings
//	federation  all of them in one process, for `creel up`, the demo and tests
//
// # Starting and ending
//
// Assembling starts no goroutine. Service.Start starts one per task. Running.Stop ends them in reverse order and
// waits for each. A task ends everything that it started before it returns. Sockets, stores and connection pools
// taken during assembly are recorded in Held: a failing step closes it, and so does Stop after the last task.
package daemon
