// SPDX-License-Identifier: Apache-2.0

// Package nodelogs reads the logs of containers from the web servers of their nodes: Hadoop's NodeManagers, and
// simulated ones. The requests are NodeManager REST's /ws/v1/node/containers/{id}/logs and
// /ws/v1/node/containerlogs/{id}/{file}.
//
// A node checks whether the user may read a log, like for its own pages. A read needs bounded memory and ends with its
// context. Redirections are not followed: the caller has chosen the node, and no node chooses another server.
package nodelogs
