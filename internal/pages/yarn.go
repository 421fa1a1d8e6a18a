// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel/internal/webdoc"
)

// Application is YARN's data about an application: its report, its attempts and its containers.
type Application struct {
	Report     Report
	Attempts   []Attempt
	Containers []Container // the first shownContainers, oldest first
	MoreRuns   int         // number of containers that are not in the list
	// Problem is the reason for a missing report.
	Problem string
	Ended   bool
}

// Report is the part of YARN's document of an application that a page shows.
type Report struct {
	Name, User, Queue, State, FinalStatus, Diagnostics, TrackingURL string

	Type       string `json:"applicationType"`
	Tags       string `json:"applicationTags"`
	Priority   Figure `json:"priority"`
	Progress   Real   `json:"progress"`
	Started    Figure `json:"startedTime"` // ms, as all times
	Launched   Figure `json:"launchTime"`
	Finished   Figure `json:"finishedTime"`
	Containers Figure `json:"runningContainers"`
	MemoryMB   Figure `json:"allocatedMB"`
	VCores     Figure `json:"allocatedVCores"`
	Unmanaged  bool   `json:"unmanagedApplication"`
}

// Attempt is one attempt of an application.
type Attempt struct {
	ID        string `json:"appAttemptId"`
	Container string `json:"containerId"` // of its AM
	Node      string `json:"nodeId"`
	Logs      string `json:"logsLink"`
	State     string `json:"appAttemptState"`
	Started   Figure `json:"startTime"`
	Finished  Figure `json:"finishedTime"`
}

// Container is one container of an application.
type Container struct {
	ID       string `json:"containerId"`
	Node     string `json:"nodeId"`
	Logs     string `json:"logUrl"`
	State    string `json:"containerState"`
	MemoryMB Figure `json:"allocatedMB"`
	VCores   Figure `json:"allocatedVCores"`
	Started  Figure `json:"startedTime"`
}

// Figure is a whole number, and Real a number with a fraction. In some places and versions YARN's JSON writes them in
// quotes.
type (
	Figure int64
	Real   float64
)

// UnmarshalJSON reads a number with or without quotes.
func (f *Figure) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*f = Figure(n)
	return err
}

// UnmarshalJSON reads a number with or without quotes.
func (f *Real) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*f = Real(v)
	return err
}

// shownContainers is the largest number of containers on one page.
const shownContainers = 50

// Application reads an application from the API. Parts that the viewer may not see are missing. An error of the report
// becomes its Problem, and is also returned.
func (c *Call) Application(id string) (a Application, err error) {
	at := "/ws/v1/cluster/apps/" + url.PathEscape(id)
	var doc struct {
		App Report `json:"app"`
	}
	if err := c.Get(at, &doc); err != nil {
		a.Problem = err.Error()
		return a, err
	}
	a.Report = doc.App
	a.Ended = slices.Contains([]string{"FINISHED", "FAILED", "KILLED"}, a.Report.State)
	var attempts struct {
		Attempts struct {
			Attempt []Attempt `json:"appAttempt"`
		} `json:"appAttempts"`
	}
	if c.Get(at+"/appattempts", &attempts) != nil { // missing if the viewer may not see them
		return a, nil
	}
	a.Attempts = attempts.Attempts.Attempt
	if n := len(a.Attempts); n > 0 && !a.Ended {
		a.containers(c, at+"/appattempts/"+url.PathEscape(a.Attempts[n-1].ID)+"/containers")
	}
	return a, nil
}

// containers reads the containers of the current attempt.
func (a *Application) containers(c *Call, path string) {
	var direct struct {
		Container  webdoc.Many[Container] `json:"container"`
		Containers struct {
			Container webdoc.Many[Container] `json:"container"`
		} `json:"containers"`
	}
	if c.Get(path, &direct) != nil { // missing for the same reason as attempts
		return
	}
	all := append(direct.Container, direct.Containers.Container...)
	slices.SortFunc(all, func(x, y Container) int {
		return cmp.Or(cmp.Compare(x.Started, y.Started), strings.Compare(x.ID, y.ID))
	})
	a.MoreRuns = max(0, len(all)-shownContainers)
	a.Containers = all[:len(all)-a.MoreRuns]
}

// AppOfAttempt returns the application of an attempt's id, in the form used by links.
func AppOfAttempt(attempt string) string {
	parts := strings.Split(attempt, "_")
	if len(parts) < 3 {
		return url.PathEscape(attempt)
	}
	return url.PathEscape("application_" + parts[1] + "_" + parts[2])
}
