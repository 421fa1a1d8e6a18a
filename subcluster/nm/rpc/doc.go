// SPDX-License-Identifier: Apache-2.0

// Package rpc carries the protocols of simulated NodeManagers: the tracker protocol towards the ResourceManager, and
// ContainerManagementProtocol towards AMs. The nodes' behaviour is in nm/server; this package has no state.
//
// Every node has a NodeID of its own that leads to this process. On Linux the nodes are addresses 127.x.y.z that
// share one port, with one listening socket tied to the loopback interface; elsewhere each node has a port of its own
// on 127.0.0.1. The NMToken of a connection identifies the node.
package rpc
