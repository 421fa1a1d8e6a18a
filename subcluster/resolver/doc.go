// SPDX-License-Identifier: Apache-2.0

// Package resolver tells which subclusters have a host or a rack, so that what an
// application wants there is asked there. It is what Hadoop calls the
// SubClusterResolver; but members publish their nodes themselves, and a file is
// only needed to overrule them.
//
// # What it holds
//
//   - Nodes: the hosts of one member by rack, and their published form. Members
//     write it as a document of the state store when it changes, and name its
//     digest in their heartbeats (subcluster.Load.Nodes). So readers fetch only
//     what they have not got, and what they fetch is what a heartbeat, maybe
//     signed, vouches for.
//   - Overrides: Hadoop's machine list, lines of "host, subcluster, rack".
//   - Table: what routers and proxies ask. Immutable; made anew when a member's
//     nodes or the list change.
//
// # Promises
//
//   - Names are compared without regard to case, as host names are, and as
//     Hadoop's resolver does.
//   - A host of the list belongs to the subcluster that the list says, whatever
//     members publish.
//   - Untrusted bytes cost bounded memory: MaxBytes unpacked, MaxHosts hosts.
//
// Package resolver/server publishes and follows.
package resolver
