// SPDX-License-Identifier: Apache-2.0

// Package server drives the rebalancer's pure parts. Keeper runs next to a ResourceManager and renews its part of
// federation-wide maxima. Leader computes and publishes plans while it has the lease. Neither is on the path of an
// allocation.
package server
