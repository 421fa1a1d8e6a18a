// SPDX-License-Identifier: Apache-2.0

// Package rpc is the router's Hadoop RPC server: ApplicationClientProtocol in the
// shape of one ResourceManager, for unmodified YarnClients, Spark and the yarn
// tools.
//
// Calls about one application go to its home as the bytes they came in, and
// the home's answer or exception comes back as the bytes it sent: what creel
// does not know survives both ways. Calls about the cluster ask every member
// and merge by the rules of package router. New ids come of any member, in blocks
// while many are asked for. A kill reaches every member, since
// any may run an UAM.
package rpc
