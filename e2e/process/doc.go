// SPDX-License-Identifier: Apache-2.0

// Package process starts the real programs of an end-to-end test as children and makes sure that they end.
//
// A child has its own process group, inherits no descriptor but its three standard ones, dies with the test binary
// (parent death signal), and is stopped when the test that started it ends: SIGTERM, then SIGKILL, newest child
// first. A child's leftovers in other sessions (the containers of a NodeManager) are found by a text in their
// environment and killed too. When a test fails, the last lines of its children are in the test's log.
//
// Nothing here sleeps for a guessed time: readiness is a line of the child's output, a port that accepts, or a file
// that the child writes. A deadline only guards against a child that never gets there.
package process
