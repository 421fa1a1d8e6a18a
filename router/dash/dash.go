// SPDX-License-Identifier: Apache-2.0

// Package dash is the router's dashboard: pages over the router's API (see internal/pages). All viewers share the
// API's answers from the members.
package dash

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

//go:embed page
var files embed.FS

// New makes the dashboard over the router's API, which serves /api/v1 and /ws/v1/cluster. begin returns the context of
// a page's requests (rest.Handler.Patient); nil: the page's own. grafana is the address of a dashboard in Grafana that
// pages link to, "" for none. It panics if an embedded template is invalid.
func New(api http.Handler, begin func(ctx context.Context) context.Context, grafana string) *pages.Site {
	to := func(path string) func(*pages.Call) string { return func(*pages.Call) string { return path } }
	app := func(c *pages.Call) string { return "/apps/" + url.PathEscape(c.Param("id")) }
	conf := pages.Config{
		API: api, Begin: begin, Templates: files, Home: "/", Search: "/apps", Problem: "creel subcluster list",
		Functions: template.FuncMap{
			"amounts":     amounts,
			"queuelink":   queueLink,
			"nodeslink":   func(member any, state string) string { return nodesLink(fmt.Sprint(member), state) },
			"nodepath":    func(id string) string { return nodeLink(id, "", "") },
			"nodelink":    func(n rest.NodeRow, kind string) string { return nodeLink(n.ID, string(n.Member), kind) },
			"logslink":    func(node, container, _ string) string { return logsLink(node, container) },
			"appslink":    appsLink,
			"subjectlink": subjectLink,
			"userlink":    func(user string) string { return pages.WithQuery("/events", "user", user) },
			"short":       short,
			"hostof":      func(node string) string { host, _, _ := strings.Cut(node, ":"); return host },
			"hostpath":    hostPath,
			"grafana":     func(member any) string { return grafanaOf(grafana, fmt.Sprint(member)) },
			// A queue in a path; "*" and the other characters of queue names stay as they are.
			"pathqueue": func(q any) string { return fmt.Sprint(q) },
		},
		Pages: []pages.Page{
			overviewPage, appsPage, appPage, queuesPage, membersPage, memberPage, nodesPage, nodePage, logsPage,
			policiesPage, policyPage, rebalancerPage, operationsPage,
			eventsPage, appEventsPage, memberEventsPage, queueEventsPage,
		},
		Nav: []pages.Link{
			{Path: "/", Title: "Overview", Section: "overview"},
			{Path: "/apps", Title: "Applications", Section: "apps"},
			{Path: "/queues", Title: "Queues", Section: "queues"},
			{Path: "/members", Title: "Members", Section: "members"},
			{Path: "/nodes", Title: "Nodes", Section: "nodes"},
			{Path: "/policies", Title: "Policies", Section: "policies"},
			{Path: "/rebalancer", Title: "Rebalancer", Section: "rebalancer"},
			{Path: "/events", Title: "Events", Section: "events"},
			{Path: "/operations", Title: "Operations", Section: "operations"},
		},
		// Targets of links that YARN's tools derive from a ResourceManager's web address; for clients that is the
		// router's.
		Other: map[string]func(*pages.Call) string{
			"/cluster": to("/"), "/cluster/apps": to("/apps"), "/cluster/nodes": to("/nodes"),
			"/cluster/scheduler": to("/queues"), "/cluster/app/{id}": app,
			"/cluster/apps/{state}": func(c *pages.Call) string {
				return pages.WithQuery("/apps", "state", c.Param("state"))
			},
			"/cluster/appattempt/{id}": func(c *pages.Call) string {
				return "/apps/" + pages.AppOfAttempt(c.Param("id"))
			},
		},
	}
	if grafana != "" {
		conf.Nav = append(conf.Nav, pages.Link{Path: grafana, Title: "Grafana", Section: "grafana"})
	}
	return pages.New(conf)
}

// appsLink returns the list of applications with some filters, as names and values.
func appsLink(pairs ...any) string {
	var text []string
	for _, p := range pairs {
		text = append(text, fmt.Sprint(p))
	}
	return pages.WithQuery("/apps", text...)
}

// hostPath returns the path of the call that drains a member's host.
func hostPath(host string, member creel.SubclusterID) string {
	return pages.WithQuery("/api/v1/drains/"+url.PathEscape(host), "subcluster", string(member))
}

// grafanaOf returns the address of Grafana's dashboard with one member selected, "" without a dashboard.
func grafanaOf(grafana, member string) string {
	u, err := url.Parse(grafana)
	if grafana == "" || err != nil {
		return ""
	}
	q := u.Query()
	q.Set("var-member", member)
	u.RawQuery = q.Encode()
	return u.String()
}

// amounts returns a resource as text.
func amounts(a subcluster.Amounts) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch {
		case a[name] >= 1<<40: // no bound
		case name == creel.MemoryName:
			parts = append(parts, units.Memory(a[name]))
		default:
			parts = append(parts, units.Number(a[name])+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}
