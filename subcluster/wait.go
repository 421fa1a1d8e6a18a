// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Wait is the reason why an application waits in one member at this moment, reported by the ResourceManager there.
// Numbers are fields; Text and UnlocksWhen are the same as sentences.
type Wait struct {
	Code  string          `json:"code"`            // queue_limit, user_limit, am_limit, no_node_has_room, ...
	Queue creel.QueuePath `json:"queue,omitempty"` // the queue with the limit
	User  string          `json:"user,omitempty"`  // the user with the limit, within the queue

	Limit Amounts `json:"limit,omitempty"` // the limit, in each unit it has
	Used  Amounts `json:"used,omitempty"`  // usage under the limit
	Needs Amounts `json:"needs,omitempty"` // amount that one more needs

	Nodes  *NodeCounts         `json:"nodes,omitempty"` // set if no node fits
	Before creel.ApplicationID `json:"before,omitzero"` // the application before it in the order
	Asked  int32               `json:"asked,omitempty"` // containers asked for and not granted
	Text   string              `json:"text"`            // one sentence
	Unlock string              `json:"unlocks_when"`    // the required change
}

// NodeCounts counts a member's nodes by the first reason that excludes an ask.
type NodeCounts struct {
	Open        int `json:"open"`        // that accept containers at all
	TooSmall    int `json:"too_small"`   // even when empty
	Blacklisted int `json:"blacklisted"` // by the application
	Refused     int `json:"refused"`     // by its placement constraint
	Full        int `json:"full"`        // too little free now
	Reserved    int `json:"reserved"`    // enough free, but reserved for others
	Elsewhere   int `json:"elsewhere"`   // enough free, but not where the ask wants to be
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

// Sentence returns the wait as text: its cause, and the required change.
func (w Wait) Sentence() string {
	if w.Unlock == "" {
		return w.Text
	}
	return w.Text + " To change that: " + w.Unlock + "."
}

// Binding lists the units of the limit that one more container would exceed, in order. The others have room.
func (w *Wait) Binding() (units []string) {
	for _, unit := range slices.Sorted(maps.Keys(w.Limit)) {
		if n := w.Needs[unit]; w.Used[unit] > w.Limit[unit]-n && (n > 0 || unit == Applications) {
			units = append(units, unit)
		}
	}
	return units
}

// AppWait is an application's state in one member: /api/v1/apps/ID/why of creel's ResourceManager.
type AppWait struct {
	Application creel.ApplicationID `json:"application"`
	State       string              `json:"state"` // by YARN's names
	Queue       creel.QueuePath     `json:"queue"`
	User        string              `json:"user"`
	Unmanaged   bool                `json:"unmanaged,omitempty"` // a proxy's UAM for an application with another home
	Containers  int32               `json:"containers"`          // running here
	Diagnostics string              `json:"diagnostics,omitempty"`
	Wait        *Wait               `json:"wait,omitempty"` // nil: it does not wait
	// Opportunistic has its opportunistic containers here, which are among Containers; nil: none.
	Opportunistic *Opportunistic `json:"opportunistic,omitempty"`
}

// Opportunistic is an application's opportunistic containers in one member, and those that wait in queues of nodes.
type Opportunistic struct {
	Containers int32 `json:"containers"`
	Waiting    int32 `json:"waiting"`
	Asked      int32 `json:"asked,omitempty"` // for which no node's queue is short enough
	// Held is the limit by which it gets no more, such as "queue root.a has its maximum of 5".
	Held string `json:"held,omitempty"`
	// Nodes are the nodes with waiting containers, the longest wait first; at most ten of NodesWaiting.
	Nodes        []NodeWait `json:"nodes,omitempty"`
	NodesWaiting int        `json:"nodes_waiting,omitempty"`
}

// namedNodes limits the nodes in a sentence.
const namedNodes = 3

// Sentence returns the same as text: the number of containers, the nodes at which they wait, and for how long.
func (o *Opportunistic) Sentence() string {
	text := fmt.Sprintf("%d opportunistic containers", o.Containers)
	if o.Asked > 0 {
		text += fmt.Sprintf(" and %d more asked for", o.Asked)
	}
	if o.Waiting == 0 {
		return text + "." + o.held()
	}
	var at []string
	for _, n := range o.Nodes[:min(len(o.Nodes), namedNodes)] {
		at = append(at, fmt.Sprintf("%d at %s for up to %.0f s", n.Waiting, n.Node, n.Longest))
	}
	if more := o.NodesWaiting - len(at); more > 0 {
		at = append(at, fmt.Sprintf("others at %d more nodes", more))
	}
	return text + fmt.Sprintf("; %d of them wait in queues: %s.", o.Waiting, strings.Join(at, ", ")) + o.held()
}

// held returns the sentence about the limit, after a space.
func (o *Opportunistic) held() string {
	if o.Held == "" {
		return ""
	}
	return " No more are granted: " + o.Held + "."
}

// NodeWait is a node with waiting opportunistic containers of an application.
type NodeWait struct {
	Node    string  `json:"node"`
	Waiting int32   `json:"waiting"`
	Longest float64 `json:"longest_s"` // seconds of the longest wait
}

// AppLine is an application in a list of one member: an item of /api/v1/apps of creel's ResourceManager, and the
// router's line for it. Times are ms of the member's clock. A user without view access to an application gets only
// the fields that YARN shows.
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
	// Waits is the code of its wait (Wait.Code), "" if it does not wait; WaitsIn is the queue with the limit. AppWait
	// has the numbers.
	Waits   string `json:"waits_for,omitempty"`
	WaitsIn string `json:"waits_in,omitempty"`
	// WaitsSince is the time at which its wait began, 0 if it does not wait. An application waits while it has no AM
	// or has asks that are not granted.
	WaitsSince int64 `json:"waits_since,omitempty"`
	// Viewers are the users with view access besides its owner, in Hadoop's form of access lists: users, a space,
	// groups; "*" is everybody. It is only sent to routers.
	Viewers string `json:"viewers,omitempty"`
	// Hidden means that other users' lists omit it; also only sent to routers.
	Hidden bool `json:"hidden,omitempty"`
}

// AppChanges lists the applications of creel's ResourceManager that changed since a router's last request:
// /api/v1/apps/changes.
type AppChanges struct {
	At    string     `json:"at"`             // value of ?since= in the next request
	Now   int64      `json:"now"`            // ms of the member's clock, which the lines' times are of
	Whole bool       `json:"whole"`          // complete list: the last answer is unknown
	Apps  []*AppLine `json:"apps"`           // in no order
	Gone  []string   `json:"gone,omitempty"` // ids of removed applications
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
	// Queued opportunistic containers wait there. Opportunistic ones run on the resources lent to them: what
	// guaranteed containers do not use. Memory is in GB, as nodes report it.
	Queued        int64 `json:"queued,omitempty"`
	Opportunistic int64 `json:"opportunistic,omitempty"`
	LentMB        int64 `json:"lent_mb,omitempty"`
	LentVCores    int64 `json:"lent_vcores,omitempty"`
	// MeasuredMB and MeasuredVCores are the use of all its containers at its last look.
	MeasuredMB     int64   `json:"measured_mb,omitempty"`
	MeasuredVCores float64 `json:"measured_vcores,omitempty"`
	// Overallocation is its offer to lend allocated and unused resources.
	Overallocation Overallocation `json:"overallocation,omitzero"`
}

// Overallocation is the offer of a node that lends: the parts of its memory and vCores up to whose use it lends, and
// the peak of use that it predicts, 0 if it predicts none.
type Overallocation struct {
	Memory          float64 `json:"memory_threshold"`
	CPU             float64 `json:"cpu_threshold"`
	PredictedMB     int64   `json:"predicted_mb,omitempty"`
	PredictedVCores float64 `json:"predicted_vcores,omitempty"`
}

// Lends reports whether the node makes an offer.
func (o Overallocation) Lends() bool { return o != Overallocation{} }

// MemoryPercent and CPUPercent are the thresholds in percent.
func (o Overallocation) MemoryPercent() float64 { return 100 * o.Memory }
func (o Overallocation) CPUPercent() float64    { return 100 * o.CPU }

// CodeDiagnostics is the code of a wait that a member reports only as a sentence, like Hadoop's ResourceManager.
const CodeDiagnostics = "diagnostics"
