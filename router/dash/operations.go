// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"net/http"
	"time"

	"github.com/creelrm/creel/router/rest"
)

var operationsPage = page{
	path: "/operations", name: "operations", title: "Operations", section: "operations", load: loadOperations,
	command: func(*call) string { return "creel config print --effective --origin" },
}

// operations is this router and what it depends on.
type operations struct {
	rest.SystemDoc
	CutOff []rest.SubclusterDoc // members that this router does not call now
	Known  int
	Events []rest.EventDoc
	Up     string
}

func loadOperations(c *call) (any, error) {
	var o operations
	if err := c.get("/api/v1/system", &o.SystemDoc); err != nil {
		return nil, err
	}
	var glance rest.OverviewDoc
	if err := c.get("/api/v1/overview", &glance); err != nil {
		return nil, err
	}
	o.Events = glance.Events
	var all rest.SubclustersDoc
	if err := c.get("/api/v1/subclusters", &all); err != nil && !isStatus(err, http.StatusServiceUnavailable) {
		return nil, err
	}
	o.Known = len(all.Subclusters)
	for _, m := range all.Subclusters {
		if len(m.CutOff) > 0 {
			o.CutOff = append(o.CutOff, m)
		}
	}
	o.Up = age(time.Since(o.Started).Seconds())
	return &o, nil
}
