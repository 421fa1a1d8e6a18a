// SPDX-License-Identifier: Apache-2.0

// Package memory is the state store of one process. It decides each promise of package statestore as a method of State:
// a plain value without lock, context or clock. Its caller passes the store's time and serializes the calls. The
// simulator owns a State, and tests compare other stores with one. Store makes a State a statestore.Store for
// concurrent callers, with the clock of its caller; tests and federations in one process use it.
//
// Snapshot and Restore write and read the whole store. A restored store has another source, so that writers notice
// that it went back. Nothing else survives the process.
package memory
