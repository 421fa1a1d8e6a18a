// SPDX-License-Identifier: Apache-2.0

// Package overcommit has the parts of the simulator's play of overcommitment that need no world: the configuration of
// nodes that lend (Play), the drawn use of one node's containers and the rules of its lending (Node), and the gain and
// the cost of lending (Result). It checks nodes from outside. Time and randomness are arguments.
package overcommit
