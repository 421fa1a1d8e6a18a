// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"net/http"
	"time"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
)

var operationsPage = pages.Page{
	Path: "/operations", Name: "operations", Title: "Operations", Section: "operations", Load: loadOperations,
	Command: func(*pages.Call) string { return "creel config print --effective --origin" },
}

// operations is this router and what it depends on.
type operations struct {
	rest.SystemDoc
	CutOff []rest.SubclusterDoc // members that this router does not call now
	Known  int
	Events []rest.EventDoc
	Up     string
}

func loadOperations(c *pages.Call) (any, error) {
	var o operations
	if err := c.Get("/api/v1/system", &o.SystemDoc); err != nil {
		return nil, err
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
	o.Up = pages.Age(time.Since(o.Started).Seconds())
	return &o, nil
}
