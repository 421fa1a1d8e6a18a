// SPDX-License-Identifier: Apache-2.0

// Package creel holds the words of the house: identifiers, resources, queue
// paths, states and sentinel errors, with the text forms that YARN prints.
//
// It imports nothing of ours, reads no clock and holds no state; every other
// package is written in these words. Values are plain and comparable wherever
// that is possible, so that they serve as map keys and test literals.
package creel
