// SPDX-License-Identifier: Apache-2.0

// Package nm is a NodeManager as a pure machine: the life cycle of its containers and its conversation with the
// ResourceManager. It reads no clock and touches neither processes nor sockets.
//
// The driver's duties:
//
//  1. Step every event with its time, and carry out the returned actions in order. An error of Step rejects the event,
//     with a text for the caller; the machine is then unchanged.
//  2. On [Register] send Registration to the ResourceManager, and Step its answer as [Registered].
//  3. While Active, send Heartbeat when [Pace] requires it, one at a time, and Step the answer as [Answered]. If no
//     answer arrives, send the same Heartbeat again.
//  4. On [Localize], [Launch], [Kill], [Pause], [Resume] and [Cleanup] call the executor, and Step its results:
//     [Localized], [Launched], [Exited], [Suspended], [Resumed].
//  5. Step [Tick] at NextDeadline.
//
// Tokens are verified before an event is made (CheckNM, CheckContainer, StartOf); this package stores the master keys
// from the ResourceManager, see ContainerKey and NMKey.
//
// Containers pass through LOCALIZING, SCHEDULED, RUNNING and DONE; also KILLING after a request to end them, and
// RELAUNCHING if their retry policy permits another try. These are YARN's states, except the short ones during which
// only a directory is deleted.
//
// On a node for opportunistic containers (Config.Queue) localized containers wait for resources, in SCHEDULED, until
// package queue starts them. An opportunistic container that must make room is killed, or passes through PAUSING,
// PAUSED and RESUMING.
package nm
