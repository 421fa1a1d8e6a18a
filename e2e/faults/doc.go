// SPDX-License-Identifier: Apache-2.0

// Package faults tests creel's daemons under faults. The state store is slow, gone, cut off, read-only, out of memory,
// failing over or empty. Daemons are paused and resume later, with requests still in their socket buffers. The daemons
// are processes of the creel binary, and the store is a real redis-server behind a path with faults. Clients are plain
// HTTP, and AMs use Hadoop RPC. The long proof of the store itself, kill -9 among 100,000 claims, is here too.
package faults
