// SPDX-License-Identifier: Apache-2.0

// Package creel defines the vocabulary of the module: identifiers, resources, queue paths, states and sentinel errors,
// with the text forms that YARN prints.
//
// It imports no package of this module, reads no clock and has no state. Every other package uses its types. Values are
// plain and, if possible, comparable, so that they serve as map keys and test literals.
package creel
