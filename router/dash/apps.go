// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
)

var appsPage = pages.Page{
	Path: "/apps", Name: "apps", Title: "Applications", Section: "apps", Load: loadApps,
	Command: func(c *pages.Call) string {
		line := "creel app list"
		for _, f := range [][2]string{
			{"state", "--state"}, {"queue", "--queue"}, {"user", "--of"}, {"type", "--type"},
			{"q", "--name"}, {"tag", "--tag"},
		} {
			if v := c.Query(f[0]); v != "" {
				line += " " + f[1] + " " + pages.ShellWord(v)
			}
		}
		if v := c.Query("sort"); slices.Contains(commandOrders, v) {
			line += " --sort " + v
		}
		return line
	},
}

// commandOrders are the orders that the command has, too.
var commandOrders = []string{"state", "started", "name", "user", "queue", "memory", "containers"}

// appList is a page of the list.
type appList struct {
	rest.AppsDoc
	Rows       []apps.Row
	Filter     map[string]string
	Next, From string
	Members    []string // members that do not answer, as text
	// Kept are the filters that the form has no field for.
	Kept       [][2]string
	Order      pages.Order
	CountLinks stateLinks
	// GroupLinks has for each group the addresses of the lists of its applications.
	GroupLinks []stateLinks
}

// stateLinks are the addresses of lists of applications: all, and by state. "" if no filter makes the list.
type stateLinks struct{ All, Running, Waiting, Ended string }

// linksOf returns the lists of applications that match some filters.
func linksOf(filters []string) stateLinks {
	var kept []string
	states := true
	for i := 0; i < len(filters); i += 2 {
		if filters[i] != "group" {
			kept = append(kept, filters[i], filters[i+1])
		}
		states = states && filters[i] != "state"
	}
	with := func(state string) string {
		if !states {
			return ""
		}
		return pages.WithQuery("/apps", append(slices.Clone(kept), "state", state)...)
	}
	return stateLinks{pages.WithQuery("/apps", kept...), with("running"), with("waiting"), with("ended")}
}

// States returns the states for the filter.
func (*appList) States() []string {
	return []string{"running", "waiting", "ended", "ACCEPTED", "FINISHED", "FAILED", "KILLED"}
}

// Groupings returns the fields by which applications can be grouped.
func (*appList) Groupings() []string {
	return []string{"queue", "user", "state", "home", "type", "tag"}
}

// Title describes the order of the list.
func (a *appList) Title() string {
	name, reverse := strings.CutPrefix(a.Order.Value(), "-")
	title := "By " + strings.NewReplacer("_", " ", "yarn ", "").Replace(name)
	switch name {
	case "", "state":
		title = "Running first, newest first"
	case "memory", "containers", "members":
		title = "Most " + name + " first"
	case "started":
		title = "Newest first"
	}
	if reverse {
		title += ", reversed"
	}
	return title
}

// appFilters are the list's parameters in the API.
var appFilters = []string{
	"q", "state", "queue", "user", "type", "home", "outcome", "tag", "group", "waits_for", "waits_in",
}

// formFilters are those of the page's form.
var formFilters = []string{"q", "state", "queue", "user", "home", "tag", "group"}

func loadApps(c *pages.Call) (any, error) {
	a := appList{Filter: map[string]string{}}
	pairs := []string{"limit", "50"}
	var kept []string // the active filters
	for _, name := range appFilters {
		if v := strings.TrimSpace(c.Query(name)); v != "" {
			a.Filter[name] = v
			kept = append(kept, name, v)
			if !slices.Contains(formFilters, name) {
				a.Kept = append(a.Kept, [2]string{name, v})
			}
		}
	}
	a.CountLinks, a.Order = linksOf(kept), pages.NewOrder(c, "/apps", kept...)
	if sort := a.Order.Value(); sort != "" {
		kept = append(kept, "sort", sort)
		a.Kept = append(a.Kept, [2]string{"sort", sort})
	}
	pairs = append(append(pairs, kept...), "cursor", c.Query("cursor"))
	if err := c.Get(pages.WithQuery("/api/v1/apps", pairs...), &a.AppsDoc); err != nil {
		return nil, err
	}
	for _, raw := range a.Applications {
		var row apps.Row
		if err := json.Unmarshal(raw, &row); err != nil {
			return nil, err
		}
		a.Rows = append(a.Rows, row)
	}
	if a.AppsDoc.Next != "" {
		a.Next = pages.WithQuery("/apps", append(kept, "cursor", a.AppsDoc.Next)...)
	}
	if c.Query("cursor") != "" {
		a.From = pages.WithQuery("/apps", kept...)
	}
	by := a.Filter["group"]
	for _, g := range a.Groups {
		var of []string
		for i := 0; i < len(kept); i += 2 {
			if kept[i] != "group" && kept[i] != by {
				of = append(of, kept[i], kept[i+1])
			}
		}
		links := stateLinks{}
		if g.Key != "" {
			links = linksOf(append(of, by, g.Key))
		}
		a.GroupLinks = append(a.GroupLinks, links)
	}
	for _, m := range a.Missing {
		text := fmt.Sprintf("%s does not answer (%s)", m.Member, m.Reason)
		if m.AgeSeconds >= 0 {
			text += "; its data shown here is " + units.Age(m.AgeSeconds) + " old"
		}
		a.Members = append(a.Members, text)
	}
	return &a, nil
}
