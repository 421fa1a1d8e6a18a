// SPDX-License-Identifier: Apache-2.0

// Package store tests what the daemons of creel do when the state store is ill:
// slow, gone, cut off, read-only, out of memory, failing over, restarted empty.
// The daemons are processes of the creel binary, the store is a real
// redis-server behind a path with faults, clients are plain HTTP, and masters
// speak Hadoop RPC. The long proof of the store itself, kill -9 among 100,000
// claims, is here too.
package store
