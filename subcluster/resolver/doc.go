// SPDX-License-Identifier: Apache-2.0

// Package resolver finds the subclusters that have a host or a rack, so that asks for it go there. It corresponds to
// Hadoop's SubClusterResolver, but members publish their nodes themselves, and a file is only needed to override
// them.
//
// # Contents
//
//   - Nodes: the hosts of one member by rack, and their published form. Members write it as a document of the state
//     store when it changes, and send its digest in their heartbeats (subcluster.Load.Nodes). So readers fetch only
//     missing documents, and a heartbeat, which may be signed, authenticates each.
//   - Overrides: Hadoop's machine list, lines of "host, subcluster, rack".
//   - Table: the lookup for routers and proxies, immutable, and replaced when a member's nodes or the list change.
//
// # Promises
//
//   - Names are compared without regard to case, like host names, and as in Hadoop's resolver.
//   - A host in the list belongs to the listed subcluster, whatever members publish.
//   - Untrusted bytes use limited memory: MaxBytes unpacked, MaxHosts hosts.
//
// Package resolver/server publishes nodes and follows members' publications.
package resolver
