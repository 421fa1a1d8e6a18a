// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"time"

	"github.com/creelrm/creel"
)

// DrainOrder takes a host out of its member.
type DrainOrder struct {
	// AtOnce ends the host's containers at once. Otherwise it gets no new ones, and leaves when those have ended.
	AtOnce bool `json:"at_once,omitempty"`
	// TimeoutSeconds is the time after which it leaves with its containers; 0 for never.
	TimeoutSeconds float64 `json:"timeout_s,omitempty"`
	Reason         string  `json:"reason,omitempty"`
}

// HostDrain is an order in force.
type HostDrain struct {
	DrainOrder
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

// HostDoc is a host of a ResourceManager of creel's: its drain, if it has one, and its nodes with their load. Before a
// drain it is the effect that a drain would have, and later its progress.
type HostDoc struct {
	Host   string             `json:"host"`
	Member creel.SubclusterID `json:"subcluster,omitempty"` // set by routers
	Drain  *HostDrain         `json:"drain,omitempty"`
	Nodes  []HostNode         `json:"nodes"`
}

// HostsDoc is the list of drained hosts.
type HostsDoc struct {
	Hosts []HostDoc `json:"hosts"`
}

// HostNode is a node of a host.
type HostNode struct {
	ID           string    `json:"id"`
	State        string    `json:"state"`
	Containers   int       `json:"containers"`
	AMs          int       `json:"ams"` // among them
	Applications []HostApp `json:"applications"`
	// LeavesIn is the time until it leaves with its containers; absent if it waits for them.
	LeavesIn *float64 `json:"leaves_in_s,omitempty"`
}

// HostApp is an application on a node.
type HostApp struct {
	ID         string `json:"id"`
	Containers int    `json:"containers"`
	AM         bool   `json:"am,omitempty"` // its AM is among them
}
