// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

// seeds of TestSeedsWithFaults under the race detector, which makes each run
// several times longer and sees nothing: there is one thread.
const defaultSeeds = 4
