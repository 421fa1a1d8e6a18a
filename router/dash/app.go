// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
)

var appPage = pages.Page{
	Path: "/apps/{id}", Name: "app", Title: "Application", Section: "apps", Load: loadApp,
	Command: func(c *pages.Call) string { return "creel app why " + pages.ShellWord(c.Param("id")) },
}

// app is the page of one application.
type app struct {
	ID       creel.ApplicationID
	Headline string
	Why      rest.WhyDoc
	pages.Application
	Timeline []moment
	// Placement is the last decision, its candidates with the chosen one first.
	Placement  *policies.Reason
	Candidates []policies.Candidate
	More       int               // candidates that are not shown
	Parts      []rest.MemberWait // its home, and the members with its UAMs
}

// PageTitle is the application's name; without one its id.
func (a *app) PageTitle() string { return cmp.Or(a.Report.Name, a.ID.String()) }

// Tabs returns the tabs of its pages.
func (a *app) Tabs() []tab { return tabsOf("/apps/", a.ID.String(), "Application", false) }

// moment is one time in an application's life, and the clock that measured it.
type moment struct {
	What, Clock string
	At          time.Time
}

// shownCandidates bounds the candidates that one page lists.
const shownCandidates = 12

func loadApp(c *pages.Call) (any, error) {
	id, err := creel.ParseApplicationID(c.Param("id"))
	if err != nil {
		return nil, pages.Bad("Invalid application id", err.Error())
	}
	a := app{ID: id}
	if err := c.Get("/api/v1/apps/"+id.String()+"/why", &a.Why); err != nil {
		if !pages.IsStatus(err, http.StatusForbidden) {
			return nil, err
		}
		a.Why.Note = err.Error()
		a.Why.Home = rowOf(c, id).Home
	}
	a.Application, _ = c.Application(id.String()) // the page shows its Problem
	if a.Report.Name == "" {
		a.Report.Name = rowOf(c, id).Name
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

// rowOf returns an application's row of the list, which all users may see; an empty one without it.
func rowOf(c *pages.Call, id creel.ApplicationID) (row apps.Row) {
	var list struct {
		Apps []apps.Row `json:"apps"`
	}
	if c.Get(pages.WithQuery("/api/v1/apps", "q", id.String(), "limit", "1"), &list) != nil || len(list.Apps) == 0 {
		return row
	}
	return list.Apps[0]
}

// place selects the decision in force, and sorts the best candidates first.
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

// headline returns the application's state in one sentence.
func (a *app) headline() string {
	r := &a.Report
	for _, k := range a.Why.Asked {
		if k.Verb == "kill" && k.Refused == "" && !a.Ended {
			return fmt.Sprintf("%s requested %s ago: %s; queued until its home %s answers.",
				k.User, units.Age(k.AgeSeconds), k.What, a.Why.Home)
		}
	}
	switch {
	case a.Why.Last != nil:
		l := a.Why.Last
		age := "when its home last answered"
		if l.AgeSeconds >= 0 {
			age = units.Age(l.AgeSeconds) + " ago"
		}
		return fmt.Sprintf("Its home %s does not answer. It was %s in %s %s, for user %s.",
			a.Why.Home, l.State, l.Queue, age, l.User)
	case a.Problem != "":
		return "Its home " + string(a.Why.Home) + " does not answer for it now: " + a.Problem
	case a.Ended:
		text := "It has ended: " + r.State
		if r.FinalStatus != r.State {
			text += ", " + r.FinalStatus
		}
		return text + "."
	}
	if w := a.Why.Greatest(); w != nil {
		text := "It waits at " + string(w.Member) + ". " + a.Why.Cause
		if a.Why.Remedy != "" {
			text += " To change that: " + a.Why.Remedy + "."
		}
		return text
	}
	if r.State == "RUNNING" {
		return fmt.Sprintf(
			"It runs at %s with %d containers and no pending asks.",
			a.Why.Home,
			max(r.Containers, 0),
		)
	}
	return fmt.Sprintf("It is %s at %s.", r.State, a.Why.Home)
}

// timeline returns the known moments in chronological order.
func (a *app) timeline() (out []moment) {
	add := func(what, clock string, at time.Time) {
		if at.UnixMilli() > 0 {
			out = append(out, moment{what, clock, at})
		}
	}
	ms := func(at pages.Figure) time.Time { return time.UnixMilli(int64(at)) }
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
			add("first grant among its present containers", "clock of its member", ms(c.Started))
			break
		}
	}
	if a.Ended {
		add("ended: "+a.Report.State, home, ms(a.Report.Finished))
	}
	return out
}
