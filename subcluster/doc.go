// SPDX-License-Identifier: Apache-2.0

// Package subcluster defines a member of the federation, its states, and the View: the data about members that a
// router, a proxy or a policy uses.
//
// A member is a YARN cluster with its own ResourceManager. It registers once for each epoch of that ResourceManager
// and then sends a heartbeat every few seconds. Whether it is alive is not stored. Each read computes it from the age
// of its last heartbeat, by the state store's clock.
//
//	alive       age <= lease                 may be a home, may be asked
//	suspect     lease < age <= 3 leases      gets no new work, keeps its applications
//	lost        age > 3 leases               its share may be reclaimed
//	draining    alive, drained by an admin   gets no new homes
//	deregistered                             it deregistered
//
// If all members fall silent together, this process probably lost its connection to them. So Build freezes the view
// at the last moment at which they were well, and records the reason in View.Freeze.
//
// The package is pure: it reads no clock and starts no goroutine. The loop that keeps a View fresh is
// statestore/watch.
package subcluster
