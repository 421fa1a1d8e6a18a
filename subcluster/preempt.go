// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"time"

	"github.com/creelrm/creel"
)

// Preemption is a ResourceManager's forecast of the containers that its next round takes back for a queue: creel's
// own document.
type Preemption struct {
	Queue   creel.QueuePath `json:"queue"`
	On      bool            `json:"on"` // false: a forecast for preemption switched on
	Victims []Victim        `json:"victims"`
}

// Victim is a container that would be taken back, or will be.
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
	Why         string              `json:"why"`         // it and no other
	UnderNotice bool                `json:"underNotice"` // its AM has been notified already
	Kill        time.Time           `json:"kill"`        // when, unless it is needed no more by then
	Ran         float64             `json:"ranSeconds"`
	// MemorySeconds and VCoreSeconds are the work that is lost, as of now.
	MemorySeconds int64 `json:"memorySeconds"`
	VCoreSeconds  int64 `json:"vcoreSeconds"`
}
