// SPDX-License-Identifier: Apache-2.0

// Package process starts the real programs of an end-to-end test as children and makes sure that they end.
//
// A child has its own process group and inherits no descriptor except its three standard ones. It dies with the test
// binary (parent death signal). When its test ends it is stopped by SIGTERM, then SIGKILL, newest child first. A
// child's leftovers in other sessions (the containers of a NodeManager) are found by a text in their environment and
// killed too. When a test fails, the last lines of its children are in the test's log.
//
// Nothing here sleeps for a guessed time. A child is ready by a line of its output, by an open port, or by a file that
// it writes. A deadline only guards against a child that never becomes ready.
package process
