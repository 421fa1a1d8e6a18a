// SPDX-License-Identifier: Apache-2.0

// Package amounts has amounts of resources: one amount of each type (Vec), the types and their comparison (Types),
// and container sizes (Sizes).
package amounts
