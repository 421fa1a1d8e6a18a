// SPDX-License-Identifier: Apache-2.0

// Package rpc serves the protocols of simulated NodeManagers. It calls the ResourceManager by the tracker protocol,
// and serves AMs by ContainerManagementProtocol. nm/server has the nodes' behaviour; this package has no state.
//
// Every node has a separate NodeID, whose address is served by this process. On Linux the nodes are addresses
// 127.x.y.z with one common port and one listening socket, bound to the loopback interface. On other systems each
// node has a separate port on 127.0.0.1. The NMToken of a connection identifies the node.
package rpc
