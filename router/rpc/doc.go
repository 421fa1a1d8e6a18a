// SPDX-License-Identifier: Apache-2.0

// Package rpc is the router's Hadoop RPC server. It serves ApplicationClientProtocol like a single ResourceManager,
// for unmodified YarnClients, Spark and the yarn tools.
//
// Calls about one application go to its home as received bytes, and home's answer or exception is returned as
// received bytes. So fields unknown to creel survive in both directions. Calls about the cluster go to every member,
// and the answers are merged by the rules of package router. New ids come from any member, in blocks while many are
// requested. A kill goes to every member, since each may run a UAM.
package rpc
