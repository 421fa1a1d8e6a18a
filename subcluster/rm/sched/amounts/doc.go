// SPDX-License-Identifier: Apache-2.0

// Package amounts counts resources: an amount of each type (Vec), the types and how a calculator compares them
// (Types), and container sizes (Sizes).
package amounts
