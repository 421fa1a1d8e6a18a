// SPDX-License-Identifier: Apache-2.0

// Package amounts counts resources: an amount of each type (Vec), the types and
// what a calculator compares of them (Types), and container sizes (Sizes).
package amounts
