// SPDX-License-Identifier: Apache-2.0

// Package server publishes a member's nodes in the state store, and follows the publications of all members, for the
// router and the AM-RM proxy. Package resolver describes the published data.
package server
