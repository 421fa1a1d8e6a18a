// SPDX-License-Identifier: Apache-2.0

// Package transfer copies the state of a stopped ResourceManager to a file and back, and removes applications from it
// or all of it. It works on every state.Log, so it moves a state between a journal and Redis.
//
// # The file
//
// The file has one JSON object a line: a header, the entries in the order of their keys, and an end with the number of
// entries and the SHA-256 of all lines before it. Keys are text, values base64. An entry is not interpreted, so that a
// state survives that a newer creel has written. The file has the master keys of the cluster: it is as secret as they
// are.
//
// # Promises
//
//  1. Import reads the whole file before it changes the state. It changes nothing if a line is damaged, missing or in
//     excess.
//  2. Import needs an empty state. The first transaction marks the state, and the last one removes the mark. A
//     ResourceManager does not start on a marked state, and Import replaces it. Format marks the state too.
//  3. Each function returns after its changes are durable.
//
// # The caller's duty
//
// No other process may use the state. A journal refuses a second process; a shared state would fence the running
// ResourceManager.
package transfer
