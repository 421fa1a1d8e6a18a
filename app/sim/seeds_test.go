// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim

// seeds of TestSeedsWithFaults.
const defaultSeeds = 12
