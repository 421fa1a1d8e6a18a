// SPDX-License-Identifier: Apache-2.0

// Package server publishes a member's nodes in the state store, and follows what
// all members published, for the router and the AM-RM proxy. What is published and
// what it means stands in package resolver.
package server
