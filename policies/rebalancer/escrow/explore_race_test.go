// SPDX-License-Identifier: Apache-2.0

//go:build race

package escrow

// maxStates of an exploration under the race detector, which makes it several
// times longer and sees nothing: there is one thread. ./test explores to the full
// in its stage sim.
const maxStates = 10_000
