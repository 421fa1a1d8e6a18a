// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/rest"
)

var queuesPage = pages.Page{
	Path: "/queues", Name: "queues", Title: "Queues", Section: "queues", Load: loadQueues,
	Command: func(*pages.Call) string { return "creel queue tree" },
}

// queueNode is a queue with data for the page.
type queueNode struct {
	rebalancer.QueueState
	Depth   int
	Name    string
	Leaf    bool
	PerUnit []queuePart // by member
}

// PageTitle is the name of the open queue.
func (q *queues) PageTitle() string {
	if q.Known {
		return "Queue " + q.Open
	}
	return "Queues"
}

// queuePart is a queue in one member, in percent of the member.
type queuePart struct {
	Member creel.SubclusterID
	Bar    pages.Bar
	rebalancer.QueueUse
}

func (q *queueNode) bar() pages.Bar {
	return pages.NewBar(q.UsedPercent, q.PendingPercent, q.Percent, q.MaximumPercent)
}

// Bar returns the queue's bullet bar, in percent of the federation.
func (q *queueNode) Bar() pages.Bar { return q.bar() }

// queues is the page of the queue tree.
type queues struct {
	rest.QueueTreeDoc
	Nodes   []*queueNode
	Drifts  int
	History []rest.QueueTreeDoc
	Open    string // the queue whose members and history are shown
	Known   bool   // there is such a queue
}

func loadQueues(c *pages.Call) (any, error) {
	var q queues
	if err := c.Get("/api/v1/queues", &q.QueueTreeDoc); err != nil {
		return nil, err
	}
	var members rest.SubclustersDoc
	if err := c.Get("/api/v1/subclusters", &members); err != nil {
		return nil, err
	}
	total := map[creel.SubclusterID]creel.Resource{}
	for _, m := range members.Subclusters {
		total[m.ID] = m.Metrics.Total()
	}
	q.Nodes, q.Open = nodesOf(q.Queues), c.Query("queue")
	for _, n := range q.Nodes {
		q.Drifts += min(len(n.Drift), 1)
		if q.Open == string(n.Queue) && n.Label == "" {
			n.PerUnit, q.Known = perMember(n, total), true
		}
	}
	if q.Version > 0 {
		var old rest.QueueTreesDoc
		err := c.Get("/api/v1/queues/history?limit=10", &old)
		if err != nil && !pages.IsStatus(err, http.StatusServiceUnavailable) {
			return nil, err
		}
		q.History = old.Versions
	}
	return &q, nil
}

// perMember returns a queue's bars in each member that has the queue.
func perMember(n *queueNode, total map[creel.SubclusterID]creel.Resource) (out []queuePart) {
	for id, amounts := range n.Members {
		use, alive := n.Use[id]
		if !alive {
			continue
		}
		of := total[id]
		guarantee := max(pages.Share(amounts["memory"], of.MemoryMB), pages.Share(amounts["vCores"], of.VCores))
		out = append(out, queuePart{id, pages.NewBar(use.UsedPercent, use.PendingPercent, guarantee, -1), use})
	}
	slices.SortFunc(out, func(a, b queuePart) int { return cmp.Compare(a.Member, b.Member) })
	return out
}

// nodesOf sets each queue's depth, and marks leaves.
func nodesOf(states []rebalancer.QueueState) (out []*queueNode) {
	for i, s := range states {
		path := string(s.Queue)
		out = append(out, &queueNode{
			QueueState: s, Name: s.Queue.Leaf(), Depth: strings.Count(path, "."),
			Leaf: i+1 == len(states) || !strings.HasPrefix(string(states[i+1].Queue), path+"."),
		})
	}
	return out
}

// leavesOf returns the leaves on nodes without a label: shares under different labels refer to different totals.
func leavesOf(states []rebalancer.QueueState) (out []*queueNode) {
	for _, n := range nodesOf(states) {
		if n.Leaf && n.Label == "" {
			out = append(out, n)
		}
	}
	return out
}
