// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/app/daemon"
	"github.com/creelrm/creel/internal/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

func rebalancerCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand("rebalancer", "plans what queues are entitled to in the whole federation", &f,
		func(ctx context.Context, s *settings.Settings) (*daemon.Service, error) {
			conf, err := role.RebalancerSettings(s)
			if err != nil {
				return nil, err
			}
			return overStore(ctx, s, func(store statestore.Store) (*daemon.Service, error) {
				r, err := role.NewRebalancer(conf, store)
				if err != nil {
					return nil, err
				}
				return &r.Service, nil
			})
		})
	f.setting(c.Flags(), "store", "creel.store.url", storeUsage)
	c.AddCommand(rebalancerPlan(), rebalancerEscrow())
	return c
}

// planLine is a queue of the plan as people read it.
type planLine struct {
	Queue    creel.QueuePath `json:"queue"`
	Wants    float64         `json:"wants"`
	Uses     float64         `json:"uses"`
	Entitled float64         `json:"entitled"`
	Reason   string          `json:"reason"`
	Members  string          `json:"members"`
}

var planColumns = []column[planLine]{
	{"QUEUE", false, func(p planLine) string { return string(p.Queue) }},
	{"WANTS", false, func(p planLine) string { return percent(p.Wants) }},
	{"USES", false, func(p planLine) string { return percent(p.Uses) }},
	{"ENTITLED", false, func(p planLine) string { return percent(p.Entitled) }},
	{"WEIGHTS", false, func(p planLine) string { return p.Members }},
	{"REASON", false, func(p planLine) string { return p.Reason }},
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func rebalancerPlan() *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "plan", Short: "show the plan in force: shares of the whole federation, by queue", Args: noArguments,
	}
	f.register(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			set, err := store.Documents(ctx, rebalancer.PlanClass)
			if err != nil {
				return err
			}
			doc, ok := set.Find(rebalancer.PlanName)
			if !ok {
				return &coded{exitNotFound, fmt.Errorf("no rebalancer has published a plan: start creel rebalancer")}
			}
			var plan subcluster.Plan
			if err := json.Unmarshal(doc.Data, &plan); err != nil {
				return fmt.Errorf("the plan cannot be read: %w", err)
			}
			var lines []planLine
			for _, q := range plan.Queues {
				l := planLine{Queue: q.Queue, Wants: q.Wants, Uses: q.Uses, Entitled: q.Entitled, Reason: q.Reason}
				var parts []string
				for _, m := range q.Members {
					parts = append(parts, fmt.Sprintf("%s %.0f%%", m.Member, 100*m.Weight))
				}
				l.Members = strings.Join(parts, ", ")
				lines = append(lines, l)
			}
			return printList(c.OutOrStdout(), f.printer, lines, planColumns)
		})
	}
	return c
}

// escrowLine is one member's part of a queue's maximum.
type escrowLine struct {
	Queue   creel.QueuePath    `json:"queue"`
	Maximum string             `json:"maximum"`
	Member  creel.SubclusterID `json:"member"`
	Cap     string             `json:"cap"`
	Needs   string             `json:"needs"`
	Share   string             `json:"share"`
	Ends    string             `json:"ends"`
}

var escrowColumns = []column[escrowLine]{
	{"QUEUE", false, func(e escrowLine) string { return string(e.Queue) }},
	{"MAXIMUM", false, func(e escrowLine) string { return e.Maximum }},
	{"MEMBER", false, func(e escrowLine) string { return string(e.Member) }},
	{"CAP", false, func(e escrowLine) string { return e.Cap }},
	{"NEEDS", false, func(e escrowLine) string { return e.Needs }},
	{"SHARE", false, func(e escrowLine) string { return e.Share }},
	{"LEASE", false, func(e escrowLine) string { return e.Ends }},
}

func rebalancerEscrow() *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "escrow", Short: "show who holds which part of federation-wide maxima", Args: noArguments,
	}
	f.register(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			set, err := store.Documents(ctx, rebalancer.EscrowClass)
			if err != nil {
				return err
			}
			var lines []escrowLine
			for _, d := range set.Documents {
				var r escrow.Record
				if err := json.Unmarshal(d.Data, &r); err != nil {
					return fmt.Errorf("the escrow record of %s cannot be read: %w", d.Name, err)
				}
				for _, h := range r.Holders {
					ends := "over"
					if left := h.Ends.Sub(set.Now); left > 0 {
						ends = left.Round(100_000_000).String()
					}
					lines = append(lines, escrowLine{
						r.Queue, amount(r.Maximum), h.Member, amount(h.Cap), amount(h.Needs), amount(h.Share), ends,
					})
				}
			}
			return printList(c.OutOrStdout(), f.printer, lines, escrowColumns)
		})
	}
	return c
}

// amount leaves out what a maximum does not bound.
func amount(r creel.Resource) string {
	if r.VCores >= 1<<40 { // an even part of no bound
		return fmt.Sprintf("%d MB", r.MemoryMB)
	}
	return r.String()
}
