// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
)

var appsPage = pages.Page{
	Path: "/apps", Name: "apps", Title: "Applications", Section: "apps", Load: loadApps,
	Command: func(c *pages.Call) string {
		line := "creel app list"
		for _, f := range [][2]string{
			{"state", "--state"}, {"queue", "--queue"}, {"user", "--of"}, {"type", "--type"},
			{"q", "--name"}, {"tag", "--tag"}, {"sort", "--sort"},
		} {
			if v := c.Query(f[0]); v != "" {
				line += " " + f[1] + " " + pages.ShellWord(v)
			}
		}
		return line
	},
}

// apps is a page of the list.
type apps struct {
	rest.AppsDoc
	Rows       []rest.AppRow
	Filter     map[string]string
	Next, From string
	Members    []string // members that do not answer, as text
	// GroupLinks has for each group the address of the list of its applications.
	GroupLinks []string
}

// States returns the states for the filter.
func (*apps) States() []string {
	return []string{"running", "waiting", "ended", "ACCEPTED", "FINISHED", "FAILED", "KILLED"}
}

// Groupings returns the fields by which applications can be grouped.
func (*apps) Groupings() []string { return []string{"queue", "user", "state", "home", "type", "tag"} }

// Orders returns the orders of the list besides the default one.
func (*apps) Orders() []string {
	return []string{"memory", "containers", "started", "name", "user", "queue"}
}

// Order describes the order of the list.
func (a *apps) Order() string {
	switch by := a.Filter["sort"]; by {
	case "", "state":
		return "Running first, newest first"
	case "memory", "containers":
		return "Most " + by + " first"
	case "started":
		return "Newest first"
	default:
		return "By " + by
	}
}

// appFilters are the list's parameters in the API.
var appFilters = []string{"q", "state", "queue", "user", "type", "home", "outcome", "tag", "group", "sort"}

func loadApps(c *pages.Call) (any, error) {
	a := apps{Filter: map[string]string{}}
	pairs := []string{"limit", "50"}
	var kept []string // the active filters
	for _, name := range appFilters {
		if v := strings.TrimSpace(c.Query(name)); v != "" {
			a.Filter[name] = v
			kept = append(kept, name, v)
		}
	}
	pairs = append(append(pairs, kept...), "cursor", c.Query("cursor"))
	if err := c.Get(pages.WithQuery("/api/v1/apps", pairs...), &a.AppsDoc); err != nil {
		return nil, err
	}
	for _, raw := range a.Applications {
		var row rest.AppRow
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
		a.GroupLinks = append(a.GroupLinks, pages.WithQuery("/apps", append(of, by, g.Key)...))
	}
	for _, m := range a.Missing {
		text := fmt.Sprintf("%s does not answer (%s)", m.Member, m.Reason)
		if m.AgeSeconds >= 0 {
			text += "; its data shown here is " + pages.Age(m.AgeSeconds) + " old"
		}
		a.Members = append(a.Members, text)
	}
	return &a, nil
}
