// SPDX-License-Identifier: Apache-2.0

// Package dash has a ResourceManager's pages, at Hadoop's paths, over its own documents (see internal/pages): the
// cluster, its applications, queues and nodes.
package dash

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/rest"
)

//go:embed page
var files embed.FS

// New makes the pages over a ResourceManager's documents. It panics if a template is invalid.
func New(api http.Handler) *pages.Site {
	to := func(path string) func(*pages.Call) string { return func(*pages.Call) string { return path } }
	list := appsPage
	list.Path = "/cluster/apps/{state}"
	one := nodesPage
	one.Path = "/cluster/nodes/{state}"
	return pages.New(pages.Config{
		API: api, Templates: files, Home: "/cluster", Search: "/cluster/apps", Problem: "creel node list",
		Functions: template.FuncMap{
			"appslink":  func(name, value string) string { return pages.WithQuery("/cluster/apps", name, value) },
			"logslink":  func(_, _, direct string) string { return direct },
			"nodepath":  func(id string) string { return pages.WithQuery("/cluster/nodes", "q", id) },
			"queuelink": func(q string) string { return pages.WithQuery("/cluster/apps", "queue", q) },
		},
		Pages: []pages.Page{clusterPage, appsPage, list, appPage, queuesPage, nodesPage, one},
		Nav: []pages.Link{
			{Path: "/cluster", Title: "Cluster", Section: "cluster"},
			{Path: "/cluster/apps", Title: "Applications", Section: "apps"},
			{Path: "/cluster/scheduler", Title: "Queues", Section: "queues"},
			{Path: "/cluster/nodes", Title: "Nodes", Section: "nodes"},
		},
		// These are further link targets of Hadoop's pages and tools.
		Other: map[string]func(*pages.Call) string{
			"/": to("/cluster"), "/cluster/": to("/cluster"), "/cluster/cluster": to("/cluster"),
			"/cluster/appattempt/{id}": func(c *pages.Call) string {
				return "/cluster/app/" + pages.AppOfAttempt(c.Param("id"))
			},
			"/cluster/logaggregationstatus/{id}": func(c *pages.Call) string {
				return "/cluster/app/" + url.PathEscape(c.Param("id"))
			},
		},
	})
}

// at returns the command option that selects this ResourceManager.
func at(c *pages.Call) string { return " --server " + pages.ShellWord(c.Origin()) }

var clusterPage = pages.Page{
	Path: "/cluster", Name: "cluster", Title: "Cluster", Section: "cluster", Load: loadCluster,
	Command: func(c *pages.Call) string { return "creel queue list" + at(c) },
}

// cluster is the overview page of the subcluster.
type cluster struct {
	Metrics  subcluster.ClusterMetrics
	Info     info
	Sentence string
	Mark     string
	Leaves   []queue
	More     int // hidden queues
	Newest   []subcluster.AppLine
}

type info struct {
	Started pages.Figure `json:"startedOn"`
	State   string       `json:"haState"`
	Version string       `json:"resourceManagerBuildVersion"`
}

// shownQueues and shownNewest limit the lists on the first page.
const shownQueues, shownNewest = 12, "10"

func loadCluster(c *pages.Call) (any, error) {
	var p cluster
	var metrics struct {
		Metrics subcluster.ClusterMetrics `json:"clusterMetrics"`
	}
	var about struct {
		Info info `json:"clusterInfo"`
	}
	var newest rest.AppsDoc
	for path, doc := range map[string]any{
		"/ws/v1/cluster/metrics": &metrics, "/ws/v1/cluster/info": &about, "/api/v1/apps?limit=" + shownNewest: &newest,
	} {
		if err := c.Get(path, doc); err != nil {
			return nil, err
		}
	}
	all, _, err := loadTree(c)
	if err != nil {
		return nil, err
	}
	p.Metrics, p.Info, p.Newest = metrics.Metrics, about.Info, newest.Apps
	for _, q := range all {
		if q.Leaf {
			p.Leaves = append(p.Leaves, q)
		}
	}
	slices.SortStableFunc(p.Leaves, func(a, b queue) int { return cmp.Compare(b.Used+b.Pending, a.Used+a.Pending) })
	p.More = max(0, len(p.Leaves)-shownQueues)
	p.Leaves = p.Leaves[:len(p.Leaves)-p.More]
	p.Sentence, p.Mark = sentence(&p.Metrics)
	return &p, nil
}

// sentence describes the subcluster's state in words.
func sentence(m *subcluster.ClusterMetrics) (text, mark string) {
	mark = "good"
	var ill []string
	for _, of := range []struct {
		n    int64
		what string
	}{
		{m.LostNodes, "lost"}, {m.UnhealthyNodes, "unhealthy"}, {m.DecommissioningNodes, "decommissioning"},
	} {
		if of.n > 0 {
			ill = append(ill, fmt.Sprintf("%s are %s", units.Number(of.n), of.what))
		}
	}
	run := "applications run"
	if m.AppsRunning == 1 {
		run = "application runs"
	}
	text = fmt.Sprintf("%s %s, %s waiting, on %s nodes", units.Number(m.AppsRunning), run,
		units.Number(m.AppsPending), units.Number(m.ActiveNodes))
	switch {
	case m.ActiveNodes == 0:
		mark = "bad"
	case len(ill) > 0:
		mark = "warn"
	}
	if len(ill) > 0 {
		text += "; of the others " + strings.Join(ill, ", ")
	}
	return text + ".", mark
}

var appsPage = pages.Page{
	Path: "/cluster/apps", Name: "apps", Title: "Applications", Section: "apps", Load: loadApps,
	Command: func(c *pages.Call) string {
		line := "creel app list" + at(c)
		for _, f := range [][2]string{{"state", "--state"}, {"queue", "--queue"}, {"user", "--of"}, {"q", "--name"}} {
			if v := appFilter(c, f[0]); v != "" {
				line += " " + f[1] + " " + pages.ShellWord(v)
			}
		}
		return line
	},
}

// apps is a page of the list, newest first.
type apps struct {
	rest.AppsDoc
	Filter      map[string]string
	All         int64
	Later, From string // addresses of the next and the first page
}

// States returns the values of the state filter.
func (*apps) States() []string {
	var out []string
	for s := creel.AppNew; ; s++ {
		if _, err := creel.ParseApplicationState(s.String()); err != nil {
			return out
		}
		out = append(out, s.String())
	}
}

// appFilter returns a filter of the list; its state may be part of the path, as in Hadoop.
func appFilter(c *pages.Call, name string) string {
	if name == "state" && c.Param("state") != "" {
		return strings.ToUpper(c.Param("state"))
	}
	return strings.TrimSpace(c.Query(name))
}

func loadApps(c *pages.Call) (any, error) {
	a := apps{Filter: map[string]string{}}
	var kept []string
	for _, name := range []string{"q", "state", "queue", "user"} {
		if v := appFilter(c, name); v != "" {
			a.Filter[name] = v
			kept = append(kept, name, v)
		}
	}
	pairs := append(slices.Clone(kept), "limit", "50", "cursor", c.Query("cursor"))
	if err := c.Get(pages.WithQuery("/api/v1/apps", pairs...), &a.AppsDoc); err != nil {
		return nil, err
	}
	for _, n := range a.Matching {
		a.All += n
	}
	if a.Next != "" {
		a.Later = pages.WithQuery("/cluster/apps", append(slices.Clone(kept), "cursor", a.Next)...)
	}
	if c.Query("cursor") != "" {
		a.From = pages.WithQuery("/cluster/apps", kept...)
	}
	return &a, nil
}

var appPage = pages.Page{
	Path: "/cluster/app/{id}", Name: "app", Title: "Application", Section: "apps", Load: loadApp,
	Command: func(c *pages.Call) string { return "creel app why " + pages.ShellWord(c.Param("id")) + at(c) },
}

// app is the page of one application.
type app struct {
	ID string
	pages.Application
	Wait     *subcluster.Wait
	Headline string
	Note     string // why the page lacks the application's diagnosis
	Logs     rest.LogsDoc
}

// PageTitle is the application's name; without one its id.
func (a *app) PageTitle() string { return cmp.Or(a.Report.Name, a.ID) }

func loadApp(c *pages.Call) (any, error) {
	id, err := creel.ParseApplicationID(c.Param("id"))
	if err != nil {
		return nil, pages.Bad("This is not an application id", err.Error())
	}
	a := app{ID: id.String()}
	if a.Application, err = c.Application(a.ID); err != nil {
		return nil, err
	}
	var why subcluster.AppWait
	if err := c.Get("/api/v1/apps/"+url.PathEscape(a.ID)+"/why", &why); err != nil {
		a.Note = err.Error()
	}
	a.Wait = why.Wait
	if err := c.Get("/api/v1/apps/"+url.PathEscape(a.ID)+"/logs", &a.Logs); err != nil && a.Note == "" {
		a.Note = err.Error()
	}
	r := &a.Report
	switch {
	case a.Ended:
		a.Headline = "It has ended: " + r.State
		if r.FinalStatus != r.State {
			a.Headline += ", " + r.FinalStatus
		}
		a.Headline += "."
	case a.Wait != nil && a.Wait.Text != "":
		a.Headline = "It waits. " + a.Wait.Sentence()
	case r.State == "RUNNING" && a.Note == "":
		a.Headline = fmt.Sprintf("It runs with %d containers, and has all it asked for.", max(r.Containers, 0))
	default:
		a.Headline = "It is " + r.State + "."
	}
	return &a, nil
}

var nodesPage = pages.Page{
	Path: "/cluster/nodes", Name: "nodes", Title: "Nodes", Section: "nodes", Load: loadNodes,
	Command: func(c *pages.Call) string {
		line := "creel node list" + at(c)
		if v := appFilter(c, "state"); v != "" {
			line += " --state " + pages.ShellWord(v)
		}
		return line
	},
}

// nodes is a page of nodes.
type nodes struct {
	rest.NodesDoc
	State, Find, Later string
}

func loadNodes(c *pages.Call) (any, error) {
	n := nodes{State: appFilter(c, "state"), Find: c.Query("q")}
	err := c.Get(pages.WithQuery("/api/v1/nodes", "state", n.State, "q", n.Find, "limit", "50",
		"cursor", c.Query("cursor")), &n.NodesDoc)
	if err != nil {
		return nil, err
	}
	if n.Next != "" {
		n.Later = pages.WithQuery("/cluster/nodes", "state", n.State, "q", n.Find, "cursor", n.Next)
	}
	return &n, nil
}
