// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"maps"
	"net/http"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
)

var operationsPage = pages.Page{
	Path: "/operations", Name: "operations", Title: "Operations", Section: "operations", Load: loadOperations,
	Command: func(c *pages.Call) string {
		if kind := c.Query("kind"); kind != "" {
			return "creel system --kind " + pages.ShellWord(kind)
		}
		return "creel system"
	},
}

// operations is the page of this router, its dependencies, and the daemons of the federation.
type operations struct {
	rest.SystemDoc
	Daemons rest.DaemonsDoc
	// DaemonsProblem is the reason why the page has no daemons.
	DaemonsProblem string
	Kind, Next     string
	CutOff         []rest.SubclusterDoc // members that this router does not call now
	Known          int
	Events         []rest.EventDoc
}

func loadOperations(c *pages.Call) (any, error) {
	var o operations
	if err := c.Get("/api/v1/system", &o.SystemDoc); err != nil {
		return nil, err
	}
	o.Kind = c.Query("kind")
	err := c.Get(pages.WithQuery("/api/v1/daemons", "kind", o.Kind, "cursor", c.Query("cursor")), &o.Daemons)
	if p, ok := err.(*pages.Problem); ok {
		o.DaemonsProblem = p.Error()
	} else if err != nil {
		return nil, err
	}
	if o.Daemons.Next != "" {
		o.Next = pages.WithQuery("/operations", "kind", o.Kind, "cursor", o.Daemons.Next)
	}
	var glance rest.OverviewDoc
	if err := c.Get("/api/v1/overview", &glance); err != nil {
		return nil, err
	}
	o.Events = glance.Events
	var all rest.SubclustersDoc
	if err := c.Get("/api/v1/subclusters", &all); err != nil && !pages.IsStatus(err, http.StatusServiceUnavailable) {
		return nil, err
	}
	o.Known = len(all.Subclusters)
	for _, m := range all.Subclusters {
		if len(m.CutOff) > 0 {
			o.CutOff = append(o.CutOff, m)
		}
	}
	return &o, nil
}

// Link returns the most useful page of a daemon's web port: a router's dashboard, the readiness of other daemons. It
// returns "" if the daemon has no web port.
func (o *operations) Link(d rest.DaemonRow) string {
	web := d.Addresses["web"]
	switch {
	case web == "":
		return ""
	case d.Kind == "router":
		return d.Scheme() + "://" + web + "/"
	}
	return d.Scheme() + "://" + web + "/readyz?verbose"
}

// OtherPorts returns a daemon's addresses except for its web port.
func (o *operations) OtherPorts(d rest.DaemonRow) map[string]string {
	ports := maps.Clone(d.Addresses)
	delete(ports, "web")
	return ports
}
