// SPDX-License-Identifier: Apache-2.0

// Package server runs NodeManagers: the machine of package nm with a clock, timers and an executor. It is independent
// of protocols: a [Tracker] makes its calls to the ResourceManager, and the server of ContainerManagementProtocol
// passes events to a [Node].
//
// [Farm] simulates many nodes in one process. Their containers run no program: the launch context sets their run time
// (nm.EnvMillis, or a command "sleep N"), unless a [Hook] takes them, as for simulated AMs. Everything else is as on
// a real node: it checks tokens, follows orders of the ResourceManager, and reports exit codes.
package server
