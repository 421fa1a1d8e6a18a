// SPDX-License-Identifier: Apache-2.0

// Package daemon is what every daemon of creel is run by: a Service is
// assembled (its ports bound, nothing running), started, watched until a signal
// or a failure, drained and released.
//
// Around it, each a package of its own:
//
//	build       which version this is
//	health      /livez, /readyz, /metrics and /version
//	webserver   a web port: limits, simple authentication, profiles
//	logs        what is logged, and how lines reach stderr
//	tracing     where spans go
//	role        a router, a proxy, a ResourceManager, simulated nodes and an
//	            agent, each made from settings
//	federation  all of them in one process, as `creel up`, the demo and tests
//	            have them
//
// # Who starts and who ends what
//
// Assembling starts no goroutine. Service.Start starts one for each task, and
// Running.Stop ends them in the reverse order and waits for each. What a task
// starts by itself it ends before it returns. What the assembly took (sockets,
// stores, pools of connections) stands in Held: a step that fails closes it,
// and so does Stop after the last task.
package daemon
