// SPDX-License-Identifier: Apache-2.0

// Package nodeindex finds nodes with free resources. It knows serial numbers of nodes and their free resources. The
// caller decides everything else about a node during the search.
package nodeindex
