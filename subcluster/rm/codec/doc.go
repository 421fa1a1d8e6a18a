// SPDX-License-Identifier: Apache-2.0

// Package codec translates between YARN's messages and the ResourceManager's
// machine: requests into what the machine takes, its answers and views into
// responses, with the tokens of containers and nodes in them. It is pure: the
// daemon's protocols and the simulator run the same.
//
// A message that is only passed on (a submission, a container's status, an
// update request) travels along untouched, so that fields we do not know
// survive.
package codec
