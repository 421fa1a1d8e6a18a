// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/subcluster"
)

var rebalancerPage = pages.Page{
	Path: "/rebalancer", Name: "rebalancer", Title: "Rebalancer", Section: "rebalancer", Load: loadRebalancer,
	Command: func(*pages.Call) string { return "creel rebalancer plan" },
}

// plans is the page of the rebalancer.
type plans struct {
	operator.Rebalancer
	Sentence string
	Queues   []planRow
	Next     bool // the rows are of the next plan
	Moves    operator.Moves
	Held     []operator.Escrow // parts of maxima and of user limits
	// Charted are the queues whose entitlements are drawn over time, by their paths.
	Charted []string
}

// planRow is one queue of a plan, in percent of the federation.
type planRow struct {
	Queue                 creel.QueuePath
	Label                 string // of the nodes
	Uses, Wants, Entitled float64
	Bar                   pages.Bar
	Reason                string
	Optout                bool
	Members               []subcluster.MemberPlan
}

// shownMoves bounds the finished moves on the page.
const shownMoves = 50

func loadRebalancer(c *pages.Call) (any, error) {
	var p plans
	if err := c.Get("/api/v1/rebalancer", &p.Rebalancer); err != nil {
		return nil, err
	}
	if err := c.Get("/api/v1/moves", &p.Moves); err != nil {
		return nil, err
	}
	p.Rebalancer.Note = cmp.Or(p.Rebalancer.Note, p.Moves.Note)
	p.Moves.Last = p.Moves.Last[:min(len(p.Moves.Last), shownMoves)]
	p.Held = slices.Concat(p.Escrow, p.UserLimits)
	plan := p.Plan
	switch {
	case p.Paused != nil:
		p.Sentence = "Plans are paused by " + p.Paused.By
		if p.Paused.Reason != "" {
			p.Sentence += ": " + p.Paused.Reason
		}
		p.Sentence += "."
	case plan == nil && p.Rebalancer.Note != "":
		p.Sentence = "The plan is unknown now."
	case plan == nil:
		p.Sentence = "No rebalancer has published a plan: every member follows its own files."
	case p.InForce:
		p.Sentence = "A plan is in force."
	default:
		p.Sentence = "The last plan's lease is over: decisions are made without it."
	}
	if plan == nil {
		plan, p.Next = p.Rebalancer.Next, p.Rebalancer.Next != nil
	}
	if plan == nil {
		return &p, nil
	}
	for s, label := range plan.EachSlow {
		p.Sentence += " " + s.Text(label) + "."
	}
	for q, label := range plan.EachQueue {
		p.Queues = append(p.Queues, planRow{
			q.Queue, label, 100 * q.Uses, 100 * q.Wants, 100 * q.Entitled,
			pages.NewBar(100*q.Uses, 100*max(0, q.Wants-q.Uses), 100*q.Entitled, -1), q.Reason, q.Optout, q.Members,
		})
	}
	p.Charted = charted(p.Queues)
	return &p, nil
}

// chartedQueues bounds the lines of a chart that a reader can tell apart.
const chartedQueues = 6

// charted returns the queues with the greatest entitlements on nodes without a label.
func charted(rows []planRow) (paths []string) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r planRow) bool { return r.Label != "" })
	slices.SortStableFunc(rows, func(a, b planRow) int { return cmp.Compare(b.Entitled, a.Entitled) })
	for _, r := range rows[:min(len(rows), chartedQueues)] {
		paths = append(paths, string(r.Queue))
	}
	return paths
}
