// SPDX-License-Identifier: Apache-2.0

//go:build !race

package escrow

// maxStates of an exploration, after which it is cut off.
const maxStates = 200_000
