// SPDX-License-Identifier: Apache-2.0

// Package creel holds the vocabulary of the module: identifiers, resources, queue paths, states and sentinel errors,
// with the text forms that YARN prints.
//
// It imports no package of this module, reads no clock and holds no state; every other package uses its types. Values
// are plain and comparable wherever that is possible, so that they serve as map keys and test literals.
package creel
