// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"github.com/creelrm/creel"
)

// Wait is the reason why an application waits in one member, as the ResourceManager there knows it at this moment.
// Numbers are fields; Text and UnlocksWhen express the same for people.
type Wait struct {
	Code  string          `json:"code"`            // queue_limit, user_limit, am_limit, no_node_has_room, ...
	Queue creel.QueuePath `json:"queue,omitempty"` // the queue with the limit
	User  string          `json:"user,omitempty"`  // the user with the limit, within the queue

	Limit Amounts `json:"limit,omitempty"` // the limit, in each unit it is in
	Used  Amounts `json:"used,omitempty"`  // of it
	Needs Amounts `json:"needs,omitempty"` // the need of one more

	Nodes  *NodeCounts         `json:"nodes,omitempty"` // where no node fits
	Before creel.ApplicationID `json:"before,omitzero"` // the application before it in the order
	Asked  int32               `json:"asked,omitempty"` // containers asked for and not given
	Text   string              `json:"text"`            // one sentence
	Unlock string              `json:"unlocks_when"`    // the required change
}

// NodeCounts are the nodes of a member by the first reason that keeps an ask off them.
type NodeCounts struct {
	Open        int `json:"open"`        // that take containers at all
	TooSmall    int `json:"too_small"`   // even when empty
	Blacklisted int `json:"blacklisted"` // by the application
	Refused     int `json:"refused"`     // by its placement constraint
	Full        int `json:"full"`        // not enough room now
	Reserved    int `json:"reserved"`    // with room, kept for others
	Elsewhere   int `json:"elsewhere"`   // with room, and not where the ask wants to be
}

// Amounts are amounts by their unit: "memory-mb", "vcores", another resource
// type, or "applications".
type Amounts map[string]int64

// Applications is the unit of limits that count applications.
const Applications = "applications"

// AmountsOf writes a resource by its types; nil for none of any.
func AmountsOf(r creel.Resource) Amounts {
	if r.IsZero() {
		return nil
	}
	a := Amounts{creel.MemoryName: r.MemoryMB, creel.VCoresName: r.VCores}
	for _, o := range r.Others {
		a[o.Name] = o.Value
	}
	return a
}

// Sentence is the wait in words: its cause, and the required change.
func (w Wait) Sentence() string {
	if w.Unlock == "" {
		return w.Text
	}
	return w.Text + " To change that: " + w.Unlock + "."
}

// AppWait is an application's state in one member: /api/v1/apps/ID/why of creel's ResourceManager.
type AppWait struct {
	Application creel.ApplicationID `json:"application"`
	State       string              `json:"state"` // by YARN's names
	Queue       creel.QueuePath     `json:"queue"`
	User        string              `json:"user"`
	Unmanaged   bool                `json:"unmanaged,omitempty"` // held by a proxy for an application that lives elsewhere
	Containers  int32               `json:"containers"`          // it has here
	Diagnostics string              `json:"diagnostics,omitempty"`
	Wait        *Wait               `json:"wait,omitempty"` // nil: nothing holds it
}

// AppLine is an application in a list of one member: an item of /api/v1/apps of creel's ResourceManager, and the
// router's line for it. Times are ms of the member's clock. A user who may not view an application gets only the
// fields that YARN shows.
type AppLine struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	User       string   `json:"user"`
	Queue      string   `json:"queue"`
	Type       string   `json:"type"`
	State      string   `json:"state"`
	Outcome    string   `json:"outcome"`
	Started    int64    `json:"started"`
	Finished   int64    `json:"finished,omitempty"`
	Containers int64    `json:"containers"`
	MemoryMB   int64    `json:"memory_mb"`
	VCores     int64    `json:"vcores"`
	Priority   int64    `json:"priority"`
	Tags       []string `json:"tags,omitempty"`
	Unmanaged  bool     `json:"unmanaged,omitempty"`
	// Waits is the code of its wait (Wait.Code), "" for none; WaitsIn is the queue with the limit. Ask for AppWait
	// for the numbers.
	Waits   string `json:"waits_for,omitempty"`
	WaitsIn string `json:"waits_in,omitempty"`
	// Viewers are the users that may view it besides its owner, as Hadoop writes access lists: users, a space,
	// groups; "*" is everybody. It is sent to routers only.
	Viewers string `json:"viewers,omitempty"`
	// Hidden means that it is in no other user's list; sent to routers only, too.
	Hidden bool `json:"hidden,omitempty"`
}

// AppChanges are the applications of creel's ResourceManager that changed since a router's last request:
// /api/v1/apps/changes.
type AppChanges struct {
	At    string     `json:"at"`             // to be given as ?since= the next time
	Whole bool       `json:"whole"`          // these are all: the last answer is unknown
	Apps  []*AppLine `json:"apps"`           // in no order
	Gone  []string   `json:"gone,omitempty"` // ids that are forgotten
}

// NodeLine is a node in a list of one member.
type NodeLine struct {
	ID         string `json:"id"`
	Rack       string `json:"rack"`
	State      string `json:"state"`
	Web        string `json:"web,omitempty"`
	Health     string `json:"health,omitempty"` // its health report, if there is one
	Label      string `json:"label,omitempty"`
	Containers int64  `json:"containers"`
	UsedMB     int64  `json:"used_mb"`
	FreeMB     int64  `json:"free_mb"`
	UsedVCores int64  `json:"used_vcores"`
	FreeVCores int64  `json:"free_vcores"`
}

// CodeDiagnostics is the code of a wait that a member reports as a sentence only, as Hadoop's does.
const CodeDiagnostics = "diagnostics"
