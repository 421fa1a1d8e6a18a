// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
)

var overviewPage = pages.Page{
	Path: "/", Name: "overview", Title: "Overview", Section: "overview", Load: loadOverview,
	Command: func(*pages.Call) string { return "creel status" },
}

// overview is the first page.
type overview struct {
	rest.OverviewDoc
	// Grants has the times from ask to grant.
	Containers, Submissions, Grants pages.Chart
	Queues                          []queueBar
	MoreQueues                      int
	Members                         []rest.SubclusterDoc
	Running, Pending                int64 // applications
	OldestWait                      float64
	Frozen                          string
}

// queueBar compares a queue's use with its guarantee.
type queueBar struct {
	Queue            string
	Bar              pages.Bar
	Running, Waiting int64
	OldestWait       float64 // in seconds
	Drift            bool
}

// overviewQueues and overviewEvents bound the rows of the first page.
const (
	overviewQueues = 12
	overviewEvents = 12
)

func loadOverview(c *pages.Call) (any, error) {
	var o overview
	if err := c.Get("/api/v1/overview", &o.OverviewDoc); err != nil {
		return nil, err
	}
	o.Running, o.Pending = o.Sum.AppsRunning, o.Sum.AppsPending
	if a := o.Apps; a != nil {
		o.Running, o.Pending, o.OldestWait = a.Running, a.Waiting, a.OldestWait
	}
	var members rest.SubclustersDoc
	err := c.Get("/api/v1/subclusters", &members)
	if err != nil && !pages.IsStatus(err, http.StatusServiceUnavailable) {
		return nil, err
	}
	o.Members, o.Frozen = members.Subclusters, members.Frozen
	rates := func(of func(r rest.RateDoc) float64) (out []float64) {
		for _, r := range o.Rates {
			out = append(out, of(r))
		}
		return out
	}
	o.Containers = pages.NewChart(
		"Containers a second",
		"a second",
		rates(func(r rest.RateDoc) float64 { return r.Containers }),
	)
	o.Submissions = pages.NewChart(
		"Submissions a second", "a second", rates(func(r rest.RateDoc) float64 { return r.Submissions }),
	)
	o.Grants = pages.NewChart("Ask to grant, p99 in ms", "ms",
		rates(func(r rest.RateDoc) float64 { return max(1000*r.GrantP99, -1) }))
	var tree rest.QueueTreeDoc
	if err := c.Get("/api/v1/queues", &tree); err != nil && !pages.IsStatus(err, http.StatusServiceUnavailable) {
		return nil, err
	}
	leaves := leavesOf(tree.Queues)
	slices.SortStableFunc(leaves, func(a, b *queueNode) int {
		return cmp.Compare(b.UsedPercent+b.PendingPercent, a.UsedPercent+a.PendingPercent)
	})
	for i, q := range leaves {
		if i == overviewQueues {
			o.MoreQueues = len(leaves) - i
			break
		}
		o.Queues = append(o.Queues, queueBar{
			string(q.Queue), q.bar(), q.Running, q.Waiting, q.OldestWait, len(q.Drift) > 0,
		})
	}
	o.Events = o.Events[:min(len(o.Events), overviewEvents)]
	return &o, nil
}
