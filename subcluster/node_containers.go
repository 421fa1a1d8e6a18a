// SPDX-License-Identifier: Apache-2.0

package subcluster

import "time"

// ContainerQueued is the state of an opportunistic container that waits in its node's queue. The other states are
// YARN's names of a ResourceManager's containers.
const ContainerQueued = "QUEUED"

// NodeContainer is a container on a node, with its application.
type NodeContainer struct {
	ID            string    `json:"id"`
	Application   string    `json:"application"`
	Name          string    `json:"name,omitempty"` // of the application
	User          string    `json:"user"`
	Queue         string    `json:"queue"`
	State         string    `json:"state"`
	MemoryMB      int64     `json:"memory_mb"`
	VCores        int64     `json:"vcores"`
	Started       time.Time `json:"started"` // of its grant, by the member's clock
	AM            bool      `json:"am,omitempty"`
	Opportunistic bool      `json:"opportunistic,omitempty"`
	Logs          string    `json:"logs,omitempty"` // address of the node's page
}

// NodeContainers are the containers of a node.
type NodeContainers struct {
	Containers []NodeContainer `json:"containers"`       // oldest first
	Hidden     int64           `json:"hidden,omitempty"` // others, whose application the caller may not view
}
