// SPDX-License-Identifier: Apache-2.0

// Package server drives the rebalancer's pure parts: Keeper runs beside a
// ResourceManager and holds its part of federation-wide maxima, Leader computes
// and publishes plans while it holds the lease. Neither is asked for anything
// by an allocation.
package server
