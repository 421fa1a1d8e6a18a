// SPDX-License-Identifier: Apache-2.0

// Package nodeindex finds nodes with free resources. It stores serial numbers of nodes and their free resources. The
// caller makes all other checks of a node during the search.
package nodeindex
