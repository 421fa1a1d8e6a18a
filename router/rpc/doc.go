// SPDX-License-Identifier: Apache-2.0

// Package rpc is the router's Hadoop RPC server: ApplicationClientProtocol in the shape of one ResourceManager, for
// unmodified YarnClients, Spark and the yarn tools.
//
// Calls about one application go to its home as the received bytes, and the home's answer or exception is returned as
// the bytes it sent: fields unknown to creel survive both ways. Calls about the cluster ask every member and merge by
// the rules of package router. New ids come from any member, in blocks while many are requested. A kill reaches every
// member, since any may run a UAM.
package rpc
