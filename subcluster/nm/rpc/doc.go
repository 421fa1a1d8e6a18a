// SPDX-License-Identifier: Apache-2.0

// Package rpc runs NodeManagers: the machine of package nm with a clock, the
// tracker protocol towards the ResourceManager, and ContainerManagementProtocol
// towards AMs.
//
// [Farm] plays many simulated nodes in one process. Their containers run no
// program: they last as long as their launch context says ([EnvMillis], or a
// command "sleep N"), unless a [Hook] takes them, as simulated AMs do.
// Everything else is as on a real node: tokens are checked, orders of the
// ResourceManager followed, exit codes reported.
//
// Every node has a NodeID of its own that leads to this process. On Linux the
// nodes are addresses 127.x.y.z that share one port, with one listening socket
// tied to the loopback interface; elsewhere each node has a port of its own on
// 127.0.0.1. Which node is meant is told by the NMToken a connection shows.
package rpc
