// SPDX-License-Identifier: Apache-2.0

package explain

import "strings"

// Limit is a reason why an application waits.
type Limit uint8

// Limits, in the order of the checks.
const (
	LimitNone         Limit = iota // it waits for nothing
	LimitSaving                    // not durable yet
	LimitQueueStopped              // its queue is stopped
	LimitParallelApps              // number of concurrent applications of a queue or user
	LimitAM                        // resources for AMs of the queue
	LimitUserAM                    // the same for one user
	LimitUnregistered              // the AM is being started or has not registered
	LimitQueue                     // maximum of a queue on the path
	LimitUser                      // user limit within the leaf
	LimitNoNode                    // no node is large enough, even when empty
	LimitRoom                      // no node has enough free now
	LimitLocality                  // delay scheduling waits for a local node, or locality is strict
	LimitBlacklist                 // all nodes with enough free are on the blacklist
	LimitReservation               // a node is reserved for it and not free enough yet
	LimitLabel                     // no node has the label
	LimitConstraint                // its placement constraint excludes the nodes that it may use
	LimitOrder                     // others are before it in the order of its queue
	LimitNodes                     // some clause excludes its ask from every node; only in lists (Waits)
)

var limits = [...]string{
	"nothing",
	"saving",
	"queue stopped",
	"parallel applications",
	"AM limit",
	"user AM limit",
	"AM not registered",
	"queue limit",
	"user limit",
	"no node large enough",
	"no node has room",
	"locality",
	"blacklist",
	"reservation",
	"label",
	"placement constraint",
	"order",
	"no node fits",
}

func (l Limit) String() string { return limits[l] }

// Code is the limit's name in documents: "AM limit" is am_limit.
func (l Limit) Code() string { return strings.ReplaceAll(strings.ToLower(limits[l]), " ", "_") }
