// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/rest"
)

var appPage = page{
	path: "/apps/{id}", name: "app", title: "Application", section: "apps", load: loadApp,
	command: func(c *call) string { return "creel app why " + shellWord(c.param("id")) },
}

// app is one application.
type app struct {
	ID       creel.ApplicationID
	Headline string
	Why      rest.WhyDoc
	Report   report
	Timeline []moment
	Attempts []attempt
	// Placement is the last decision, its candidates with the chosen one first.
	Placement  *policies.Reason
	Candidates []policies.Candidate
	More       int // candidates that are not shown
	Containers []container
	MoreRuns   int
	Parts      []rest.MemberWait // its home, and members in which it has a UAM
	// Problem says why its home's report is not there.
	Problem string
	Ended   bool
}

func (a *app) title() string { return a.ID.String() }

// report is what the page shows of YARN's document of an application.
type report struct {
	Name, User, Queue, State, FinalStatus, Diagnostics, TrackingURL, AMContainerLogs string

	Type       string `json:"applicationType"`
	Tags       string `json:"applicationTags"`
	Priority   figure `json:"priority"`
	Progress   real   `json:"progress"`
	Started    figure `json:"startedTime"`
	Launched   figure `json:"launchTime"`
	Finished   figure `json:"finishedTime"`
	Containers figure `json:"runningContainers"`
	MemoryMB   figure `json:"allocatedMB"`
	VCores     figure `json:"allocatedVCores"`
	Unmanaged  bool   `json:"unmanagedApplication"`
}

// moment is a point of an application's life, by the clock that knows it.
type moment struct {
	What, Clock string
	At          time.Time
}

type attempt struct {
	ID        string `json:"appAttemptId"`
	Container string `json:"containerId"`
	Node      string `json:"nodeId"`
	Logs      string `json:"logsLink"`
	State     string `json:"appAttemptState"`
	Started   figure `json:"startTime"`
	Finished  figure `json:"finishedTime"`
}

type container struct {
	ID       string `json:"containerId"`
	Node     string `json:"nodeId"`
	Logs     string `json:"logUrl"`
	State    string `json:"containerState"`
	MemoryMB figure `json:"allocatedMB"`
	VCores   figure `json:"allocatedVCores"`
	Started  figure `json:"startedTime"`
}

// figure is a whole number, and real one with a part: YARN's JSON has them in quotes
// at some places and versions.
type (
	figure int64
	real   float64
)

func (f *figure) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*f = figure(n)
	return err
}

func (f *real) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*f = real(v)
	return err
}

// shownContainers and shownCandidates bound what one page lists.
const (
	shownContainers = 50
	shownCandidates = 12
)

func loadApp(c *call) (any, error) {
	id, err := creel.ParseApplicationID(c.param("id"))
	if err != nil {
		return nil, &problem{http.StatusBadRequest, "This is no application id", err.Error()}
	}
	a := app{ID: id}
	at := "/ws/v1/cluster/apps/" + id.String()
	if err := c.get("/api/v1/apps/"+id.String()+"/why", &a.Why); err != nil {
		if !isStatus(err, http.StatusForbidden) {
			return nil, err
		}
		a.Why.Note = err.Error()
		a.Why.Home = c.homeOf(id)
	}
	var doc struct {
		App report `json:"app"`
	}
	if err := c.get(at, &doc); err != nil {
		a.Problem = err.Error()
	}
	a.Report = doc.App
	a.Ended = slices.Contains([]string{"FINISHED", "FAILED", "KILLED"}, a.Report.State)
	var attempts struct {
		Attempts struct {
			Attempt []attempt `json:"appAttempt"`
		} `json:"appAttempts"`
	}
	if a.Problem == "" && c.get(at+"/appattempts", &attempts) == nil { // who may not see them gets none
		a.Attempts = attempts.Attempts.Attempt
	}
	if n := len(a.Attempts); n > 0 && !a.Ended {
		a.containers(c, at+"/appattempts/"+url.PathEscape(a.Attempts[n-1].ID)+"/containers")
	}
	for _, w := range a.Why.Waits {
		if w.Home || w.Containers > 0 || w.Wait != nil || w.Error != "" {
			a.Parts = append(a.Parts, w)
		}
	}
	a.place()
	a.Headline, a.Timeline = a.headline(), a.timeline()
	return &a, nil
}

// homeOf is an application's home as lists show it, which all may see.
func (c *call) homeOf(id creel.ApplicationID) creel.SubclusterID {
	var list struct {
		Apps []rest.AppRow `json:"apps"`
	}
	if c.get(withQuery("/api/v1/apps", "q", id.String(), "limit", "1"), &list) != nil || len(list.Apps) == 0 {
		return ""
	}
	return list.Apps[0].Home
}

// containers reads those of the current attempt, in all members.
func (a *app) containers(c *call, path string) {
	var direct struct {
		Container  []container `json:"container"`
		Containers struct {
			Container []container `json:"container"`
		} `json:"containers"`
	}
	if c.get(path, &direct) != nil { // as with attempts
		return
	}
	list := append(direct.Container, direct.Containers.Container...)
	slices.SortFunc(list, func(x, y container) int {
		return cmp.Or(cmp.Compare(x.Started, y.Started), strings.Compare(x.ID, y.ID))
	})
	a.MoreRuns = max(0, len(list)-shownContainers)
	a.Containers = list[:len(list)-a.MoreRuns]
}

// place picks the decision that holds, with the best candidates first.
func (a *app) place() {
	for i := len(a.Why.Tries) - 1; i >= 0; i-- {
		if a.Why.Tries[i].Reason == nil {
			continue
		}
		a.Placement = a.Why.Tries[i].Reason
		list := slices.Clone(a.Placement.Candidates)
		first := func(c policies.Candidate) int {
			switch {
			case c.Member == a.Placement.Chosen:
				return 0
			case c.Excluded == "":
				return 1
			}
			return 2
		}
		slices.SortStableFunc(list, func(x, y policies.Candidate) int {
			return cmp.Or(cmp.Compare(first(x), first(y)), cmp.Compare(y.Score, x.Score))
		})
		a.More = max(0, len(list)-shownCandidates)
		a.Candidates = list[:len(list)-a.More]
		return
	}
}

// headline is the application's state in one sentence.
func (a *app) headline() string {
	r := &a.Report
	for _, k := range a.Why.Asked {
		if k.Verb == "kill" && k.Refused == "" && !a.Ended {
			return fmt.Sprintf("%s asked %s ago: %s; that waits for its home %s.",
				k.User, age(k.AgeSeconds), k.What, a.Why.Home)
		}
	}
	switch {
	case a.Problem != "":
		return "Its home " + string(a.Why.Home) + " does not tell of it now: " + a.Problem
	case a.Ended:
		text := "It has ended: " + r.State
		if r.FinalStatus != r.State {
			text += ", " + r.FinalStatus
		}
		return text + "."
	}
	for _, w := range a.Why.Waits {
		if w.Wait != nil && w.Wait.Text != "" {
			return "It waits at " + string(w.Member) + ". " + w.Wait.Sentence()
		}
	}
	if r.State == "RUNNING" {
		return fmt.Sprintf(
			"It runs at %s with %d containers, and has all it asked for.",
			a.Why.Home,
			max(r.Containers, 0),
		)
	}
	return fmt.Sprintf("It is %s at %s.", r.State, a.Why.Home)
}

// timeline are the moments that are known, in the order in which they come.
func (a *app) timeline() (out []moment) {
	add := func(what, clock string, at time.Time) {
		if at.UnixMilli() > 0 {
			out = append(out, moment{what, clock, at})
		}
	}
	ms := func(at figure) time.Time { return time.UnixMilli(int64(at)) }
	home := "clock of " + string(a.Why.Home)
	if !a.Why.Received.IsZero() {
		add("received by a router", "clock of the router that took it", a.Why.Received)
		add("its home was claimed by it", "clock of the router that took it", a.Why.Claimed)
	}
	add("submitted at "+string(a.Why.Home), home, ms(a.Report.Started))
	add("its AM was launched", home, ms(a.Report.Launched))
	for _, t := range a.Attempts[min(1, len(a.Attempts)):] {
		add(t.ID+" began", home, ms(t.Started))
	}
	am := ""
	if n := len(a.Attempts); n > 0 {
		am = a.Attempts[n-1].Container
	}
	for _, c := range a.Containers { // oldest first
		if c.ID != am {
			add("first grant of the containers that it has now", "clock of its member", ms(c.Started))
			break
		}
	}
	if a.Ended {
		add("ended: "+a.Report.State, home, ms(a.Report.Finished))
	}
	return out
}
