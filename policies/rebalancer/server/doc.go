// SPDX-License-Identifier: Apache-2.0

// Package server drives the rebalancer's pure parts: Keeper runs next to a ResourceManager and holds its part of
// federation-wide maxima, Leader computes and publishes plans while it holds the lease. An allocation calls neither
// of them.
package server
