// SPDX-License-Identifier: Apache-2.0

// Package server drives the machine of package pair: it asks the lease, follows the state while this ResourceManager
// is the standby, and starts and ends the services.
//
//	loop         owns the machine; performs its actions in goroutines of their own
//	follower     brings the standby's copy of the state up to date
//	Leads        one atomic read, for every call that is answered
package server
