// SPDX-License-Identifier: Apache-2.0

// Package constraints has the placement constraints of scheduling requests and decides which nodes they admit.
//
// A Constraint is a tree of clauses. A clause refers to containers with an allocation tag, to an attribute of a host,
// or to a node's label. Tags counts the containers by tag, for each node and each rack, so that a decision iterates
// over no containers. The owner reports each start and end of a tagged container (Tags.Count), and asks before each
// grant (Tags.Refused). A Want is the part of a scheduling request that is not an amount.
//
// The package does not know queues, asks or free resources: package sched retries the asks that a change may help.
package constraints
