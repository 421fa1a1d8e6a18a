// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"strings"
	"time"
	"unique"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// Row is an application in a list. Times are ms of its home's clock; containers, memory and vcores are the sums over
// all members.
type Row struct {
	subcluster.AppLine
	Home      creel.SubclusterID   `json:"home"`
	Elsewhere []creel.SubclusterID `json:"elsewhere,omitempty"` // members with its UAMs
	// WaitsText is home's text about the wait if home reports no codes (Hadoop's ResourceManager). Then waits_for is
	// "diagnostics".
	WaitsText string `json:"waits_text,omitempty"`
	// AgeSeconds is the age of this data if its home does not answer now.
	AgeSeconds float64 `json:"age_s,omitempty"`
	// WaitsSeconds is the age of its wait; omitted if it does not wait, or if the member does not report it.
	WaitsSeconds float64 `json:"waits_s,omitempty"`

	waits   time.Time // start of its wait, by this router's clock; zero if unknown
	id      creel.ApplicationID
	viewers string // access list of its viewers; everyone in a list that a member made for one viewer
	hidden  bool   // from lists of users without permission to view it
	own     bool   // from a list that a member made for one viewer
	rank    rank
	from    creel.SubclusterID
	at      time.Time // time when its home sent it, if it is not current
}

// everyone is the access list that allows all users.
const everyone = "*"

// rank orders applications. One that waits has no AM yet, or has asks that are not granted.
type rank int

const (
	running rank = iota
	waiting
	ended
)

// rankNames has the name of each rank, which filters accept as a state.
var rankNames = [...]string{"running", "waiting", "ended"}

func rankOf(a *Row) rank {
	switch {
	case a.State == "FINISHED" || a.State == "FAILED" || a.State == "KILLED":
		return ended
	case a.State == "RUNNING" && a.WaitsSince == 0:
		return running
	}
	return waiting
}

// longestWait limits the age of a wait, in ms: a member may report any number.
const longestWait = int64(10 * 365 * 24 * time.Hour / time.Millisecond)

// rowOfLine makes a row from a line that a member sent at its time sent, in ms, and that came at now. Strings common to
// many lines are stored once.
func rowOfLine(line *subcluster.AppLine, from creel.SubclusterID, sent int64, now time.Time) *Row {
	a := &Row{AppLine: *line, Home: from, from: from}
	for _, text := range []*string{&a.User, &a.Queue, &a.Type, &a.State, &a.Outcome, &a.Waits, &a.WaitsIn, &a.Viewers} {
		*text = unique.Make(*text).Value()
	}
	a.viewers, a.Viewers = a.Viewers, ""
	a.hidden, a.Hidden = a.Hidden, false
	a.id, _ = creel.ParseApplicationID(a.ID) // without an id it is the zero id
	a.rank = rankOf(a)
	if a.WaitsSince > 0 {
		a.waits = now.Add(-time.Duration(min(max(sent-a.WaitsSince, 0), longestWait)) * time.Millisecond)
		a.WaitsSince = 0 // of another clock
	}
	return a
}

// rowOfReport makes a row from an application of YARN's list that came at now. The list has no codes, and no asks of
// applications that run: only those without an AM wait, since their start.
func rowOfReport(raw []byte, from creel.SubclusterID, now time.Time) *Row {
	a := &Row{Home: from, from: from}
	elapsed := int64(-1) // ms since its start, by its home's clock
	rawjson.EachField(raw, func(name, v []byte) bool {
		if string(name) == "elapsedTime" {
			elapsed = rawjson.Whole(v)
		} else {
			a.set(string(name), v)
		}
		return true
	})
	a.id, _ = creel.ParseApplicationID(a.ID) // without an id it is the zero id
	if app, ok := router.UAMOf(a.Unmanaged, a.Tags); ok {
		a.ID, a.id = app.String(), app
	}
	a.rank = rankOf(a)
	if a.rank == waiting && elapsed >= 0 {
		a.waits = now.Add(-time.Duration(min(elapsed, longestWait)) * time.Millisecond)
	}
	if a.rank != waiting || a.WaitsText == "" {
		a.WaitsText = ""
	} else {
		a.Waits = subcluster.CodeDiagnostics
	}
	return a
}

// set sets a field from its name and value in YARN's list.
func (a *Row) set(name string, v []byte) {
	switch name {
	case "id":
		a.ID = rawjson.Text(v)
	case "name":
		a.Name = rawjson.Text(v)
	case "user":
		a.User = rawjson.Text(v)
	case "queue":
		a.Queue = rawjson.Text(v)
	case "applicationType":
		a.Type = rawjson.Text(v)
	case "state":
		a.State = rawjson.Text(v)
	case "finalStatus":
		a.Outcome = rawjson.Text(v)
	case "startedTime":
		a.Started = rawjson.Whole(v)
	case "finishedTime":
		a.Finished = rawjson.Whole(v)
	case "runningContainers":
		a.Containers = max(rawjson.Whole(v), 0)
	case "allocatedMB":
		a.MemoryMB = max(rawjson.Whole(v), 0)
	case "allocatedVCores":
		a.VCores = max(rawjson.Whole(v), 0)
	case "priority":
		a.Priority = rawjson.Whole(v)
	case "applicationTags":
		if text := rawjson.Text(v); text != "" {
			a.Tags = strings.Split(text, ",")
		}
	case "diagnostics":
		a.WaitsText = rawjson.Text(v)
	case "unmanagedApplication":
		a.Unmanaged = rawjson.Flag(v)
	}
}

// forViewer marks rows that a member made for one viewer: it has left out the fields that the viewer may not see.
func forViewer(rows []*Row) []*Row {
	for _, a := range rows {
		a.viewers, a.hidden, a.own = everyone, false, true
	}
	return rows
}

// guarded returns an application without the fields for permitted viewers only.
func guarded(a *Row) *Row {
	b := *a
	b.Started, b.Finished, b.Containers, b.MemoryMB, b.VCores, b.waits = 0, 0, 0, 0, 0, time.Time{}
	return &b
}

// SentAt returns the time when its home sent it; zero if it is current.
func (a *Row) SentAt() time.Time { return a.at }

// waitsFor is the age of its wait in whole seconds; 0 if it does not wait, or if that is unknown.
func (a *Row) waitsFor(now time.Time) float64 {
	if a.rank != waiting || a.waits.IsZero() {
		return 0
	}
	return max(now.Sub(a.waits).Round(time.Second).Seconds(), 1)
}

// isIn reports whether an application is in a state: a rank in lower case, or YARN's state. "running" in lower case
// does not contain those that wait for asks.
func (a *Row) isIn(state string) bool {
	for r, name := range rankNames {
		if name == state {
			return a.rank == rank(r)
		}
	}
	return strings.EqualFold(a.State, state)
}
