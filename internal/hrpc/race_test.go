// SPDX-License-Identifier: Apache-2.0

//go:build race

package hrpc

const raceEnabled = true
