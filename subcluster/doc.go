// SPDX-License-Identifier: Apache-2.0

// Package subcluster defines a member of the federation, its states, and the View: the data about members that a
// router, a proxy or a policy uses.
//
// A member is a YARN cluster with its own ResourceManager. It registers once for each epoch of that ResourceManager
// and then sends a heartbeat every few seconds. Whether it is alive is not stored: it is computed, each time it is
// read, from the age of its last heartbeat by the state store's clock.
//
//	alive       age <= lease                 may be a home, may be asked
//	suspect     lease < age <= 3 leases      gets no new work, keeps its applications
//	lost        age > 3 leases               its places may be reclaimed
//	draining    alive, and an admin said so  gets no new homes
//	deregistered                             it left by itself
//
// If all members fall silent together, it is far more likely that this process lost them than that they all died:
// Build then freezes the view at the last moment in which they were well, and records it in View.Freeze.
//
// The package is pure: it reads no clock and starts nothing. The loop that keeps a View fresh is statestore/watch.
package subcluster
