// SPDX-License-Identifier: Apache-2.0

// Package opportune has the parts of the simulator's play of opportunistic containers that need no world: the drawn
// configuration (Play), an AM that asks for containers of both types and promotes some (Mix), the rules of one node's
// queue (Queue), and what proxies have placed and with which keys (Placements, Keys). Time and randomness are
// arguments.
package opportune
