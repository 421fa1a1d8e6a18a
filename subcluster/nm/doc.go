// SPDX-License-Identifier: Apache-2.0

// Package nm is a NodeManager as a pure machine: the life cycle of its containers and its conversation with the
// ResourceManager. It reads no clock and touches neither processes nor sockets.
//
// The driver's duties:
//
//  1. Step every event with its time, and perform the returned actions in order. An error of Step is the refusal of
//     that event, worded for the caller; the machine is then unchanged.
//  2. On [Register] send Registration to the ResourceManager, and Step its answer as [Registered].
//  3. While Active, send Heartbeat when [Pace] says so, one at a time, and Step the answer as [Answered]. An answer
//     that never came is repaired by sending the same Heartbeat again.
//  4. On [Localize], [Launch], [Kill] and [Cleanup] make the executor do so, and Step its results: [Localized],
//     [Launched], [Exited].
//  5. Step [Tick] at NextDeadline.
//
// Tokens are verified before an event is made (CheckNM, CheckContainer, StartOf); the master keys from the
// ResourceManager are stored here, see ContainerKey and NMKey.
//
// Containers pass LOCALIZING, SCHEDULED, RUNNING and DONE; KILLING on a request to end them, RELAUNCHING when their
// retry policy allows another try. These are YARN's states without the short ones in between, in which only a
// directory is being deleted.
package nm
