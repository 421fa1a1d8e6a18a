// SPDX-License-Identifier: Apache-2.0

// Package codec translates between YARN's messages and the ResourceManager's
// machine: requests into what the machine takes, its views into reports. It is
// pure, so that the daemon's protocols and the simulator can share it.
//
// A message that is only passed on (a submission, a container's status, an
// update request) travels along untouched, so that fields we do not know
// survive.
package codec
