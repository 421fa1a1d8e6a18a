// SPDX-License-Identifier: Apache-2.0

// Package server runs NodeManagers: the machine of package nm with a clock, timers and an executor. It knows no
// protocol: a [Tracker] carries its calls to the ResourceManager, and the server of ContainerManagementProtocol
// passes a [Node] its events.
//
// [Farm] plays many simulated nodes in one process. Their containers run no program: their launch context sets how
// long they last (nm.EnvMillis, or a command "sleep N"), unless a [Hook] takes them, as simulated AMs do. Everything
// else is as on a real node: tokens are checked, orders of the ResourceManager followed, exit codes reported.
package server
