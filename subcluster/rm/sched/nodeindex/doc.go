// SPDX-License-Identifier: Apache-2.0

// Package nodeindex finds nodes with room. It knows nodes by serial numbers and
// what each has free; what else stands for or against a node is the caller's to
// say while it searches.
package nodeindex
