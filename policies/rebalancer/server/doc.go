// SPDX-License-Identifier: Apache-2.0

// Package server runs the rebalancer. Leader computes plans, publishes them, and checks the federation's invariants
// while it has the lease. It is not on the path of an allocation. Package subcluster/member is the members' side.
package server
