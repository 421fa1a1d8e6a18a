// SPDX-License-Identifier: Apache-2.0

// Package codec translates between YARN's messages and the ResourceManager's machine: requests into the machine's
// input, and its results and views into responses, with tokens for containers and nodes. It is pure: the daemon's
// protocols and the simulator run the same code.
//
// A message that is only passed on (a submission, a container's status, an update request) is not parsed, so that
// unknown fields survive.
package codec
