// SPDX-License-Identifier: Apache-2.0

// Package levels chooses nodes for opportunistic containers of one ask. An ask first gets containers on its hosts, then
// on its racks, then on the least loaded nodes. ResourceManagers and AM-RM proxies both place containers by this rule.
// They differ in their knowledge of the nodes: the caller lists the nodes and decides whether one admits a container.
package levels
