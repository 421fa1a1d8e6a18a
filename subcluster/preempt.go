// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"time"

	"github.com/creelrm/creel"
)

// Preemption is a ResourceManager's forecast of the containers that its next round preempts for a queue: creel's own
// document.
type Preemption struct {
	Queue   creel.QueuePath `json:"queue"`
	On      bool            `json:"on"` // false: a forecast as if preemption were on
	Victims []Victim        `json:"victims"`
}

// Victim is a container that would be preempted, or will be.
type Victim struct {
	Container   creel.ContainerID   `json:"container"`
	User        string              `json:"user"`
	Queue       creel.QueuePath     `json:"queue"`
	Node        string              `json:"node"`
	Resource    Amounts             `json:"resource"`
	AM          bool                `json:"am,omitempty"`
	For         creel.ApplicationID `json:"for"`
	ForQueue    creel.QueuePath     `json:"forQueue"`
	Rule        string              `json:"rule"`
	Why         string              `json:"why"`         // why this container
	UnderNotice bool                `json:"underNotice"` // its AM has been notified
	Kill        time.Time           `json:"kill"`        // when, unless it is not needed by then
	Ran         float64             `json:"ranSeconds"`
	// MemorySeconds and VCoreSeconds are the work that would be lost now.
	MemorySeconds int64 `json:"memorySeconds"`
	VCoreSeconds  int64 `json:"vcoreSeconds"`
}
