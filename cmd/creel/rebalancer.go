// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

func rebalancerCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand("rebalancer", "plan the federation-wide entitlements of queues", &f,
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
	f.requireStoreFlag(c.Flags())
	c.AddCommand(rebalancerPlan(), rebalancerEscrow(), rebalancerWhy(), rebalancerHistory(), rebalancerPause(true),
		rebalancerPause(false), rebalancerMoves(), rebalancerAudit(), rebalancerRollback())
	return c
}

// planLine is a queue of the plan as printed.
type planLine struct {
	Queue    creel.QueuePath `json:"queue"`
	Label    string          `json:"label,omitempty"` // all parts are shares of this label's nodes
	Wants    float64         `json:"wants"`
	Uses     float64         `json:"uses"`
	Entitled float64         `json:"entitled"`
	Reason   string          `json:"reason"`
	Members  string          `json:"members"`
}

var planColumns = []column[planLine]{
	{"QUEUE", false, func(p planLine) string { return string(p.Queue) }},
	{"LABEL", false, func(p planLine) string { return p.Label }},
	{"WANTS", false, func(p planLine) string { return percent(p.Wants) }},
	{"USES", false, func(p planLine) string { return percent(p.Uses) }},
	{"ENTITLED", false, func(p planLine) string { return percent(p.Entitled) }},
	{"WEIGHTS", false, func(p planLine) string { return p.Members }},
	{"REASON", false, func(p planLine) string { return p.Reason }},
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func rebalancerPlan() *cobra.Command {
	var f policyFlags
	var dryRun bool
	c := &cobra.Command{
		Use: "plan", Short: "show the plan in force: shares of the whole federation, by queue", Args: noArguments,
	}
	f.register(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "the plan from the router's current view")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if len(f.conf.flags) > 0 {
			if dryRun {
				return usage(errors.New("--dry-run asks a router: leave out --store"))
			}
			past := storeFlags{confFlags: f.conf, printer: f.printer}
			return past.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
				set, err := store.Documents(ctx, rebalancer.PlanClass)
				if err != nil {
					return err
				}
				doc, ok := set.Find(rebalancer.PlanName)
				if !ok {
					return errNoPlan
				}
				plan, err := subcluster.ParsePlan(doc.Data, doc.Version, doc.Time)
				if err != nil {
					return err
				}
				return printPlan(c, f.printer, plan)
			})
		}
		state, err := f.rebalancer(c.Context())
		if err != nil {
			return err
		}
		plan := state.Plan
		if dryRun {
			plan = state.Next
		}
		if plan == nil {
			return errNoPlan
		}
		if err := printPlan(c, f.printer, plan); err != nil || f.printer.format != "table" || dryRun {
			return err
		}
		for s, label := range plan.EachSlow {
			fmt.Fprintln(c.OutOrStdout(), s.Text(label))
		}
		switch text := c.OutOrStdout(); {
		case state.Paused != nil:
			why := ""
			if state.Paused.Reason != "" {
				why = ": " + state.Paused.Reason
			}
			fmt.Fprintf(text, "paused by %s since %s%s\n", state.Paused.By, state.Paused.At.Format(time.RFC3339), why)
		case !state.InForce:
			fmt.Fprintln(text, "its lease is over: everything is decided without it")
		}
		return printMoves(c, &f.clientFlags)
	}
	return c
}

var errNoPlan = &exitError{exitNotFound, errors.New("no rebalancer has published a plan: start creel rebalancer")}

func (f *clientFlags) rebalancer(ctx context.Context) (state operator.Rebalancer, err error) {
	_, err = f.call(ctx, http.MethodGet, "/api/v1/rebalancer", nil, nil, &state)
	return state, err
}

func printPlan(c *cobra.Command, p printer, plan *subcluster.Plan) error {
	var lines []planLine
	for q, label := range plan.EachQueue {
		l := planLine{q.Queue, label, q.Wants, q.Uses, q.Entitled, q.Reason, ""}
		var parts []string
		for _, m := range q.Members {
			parts = append(parts, fmt.Sprintf("%s %.0f%%", m.Member, 100*m.Weight))
		}
		l.Members = strings.Join(parts, ", ")
		lines = append(lines, l)
	}
	if err := printList(c.OutOrStdout(), p, lines, planColumns); err != nil || p.format != "table" {
		return err
	}
	for b, label := range plan.EachBudget {
		fmt.Fprintln(c.OutOrStdout(), b.Text(label))
	}
	return nil
}

func rebalancerWhy() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "why QUEUE", Short: "explain a queue's entitlement, and where it applies", Args: exactly(1, "one queue"),
		ValidArgsFunction: f.queues,
	}
	f.register(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		state, err := f.rebalancer(c.Context())
		if err != nil {
			return err
		}
		if state.Plan == nil {
			return errNoPlan
		}
		var found *subcluster.QueuePlan
		parts := map[string]*subcluster.QueuePlan{} // by label
		for q, label := range state.Plan.EachQueue {
			if string(q.Queue) == args[0] || string(q.Queue) == "root."+args[0] {
				parts[label] = q
				if found == nil {
					found = q
				}
			}
		}
		if found == nil {
			return &exitError{
				exitNotFound,
				fmt.Errorf("the plan has no leaf queue %s; see `creel rebalancer plan`", args[0]),
			}
		}
		tree, err := f.queueTree(c.Context())
		if err != nil {
			return err
		}
		return printOne(c.OutOrStdout(), f.printer, found, string(found.Queue), func(w io.Writer) error {
			for _, label := range slices.Sorted(maps.Keys(parts)) {
				tellPlan(w, parts[label], label)
				tellPlanned(w, tree.Queues, found.Queue, label)
			}
			for s, label := range state.Plan.EachSlow {
				if _, of := parts[label]; of {
					fmt.Fprintln(w, s.Text(label))
				}
			}
			for _, e := range state.Escrow {
				if e.Queue != found.Queue {
					continue
				}
				lasts := "for " + units.Age(e.LeaseSeconds) + " yet"
				if e.Lasts != "" {
					lasts = e.Lasts
				}
				of := "its maximum"
				if e.Label != "" {
					of += " on nodes of label " + e.Label
				}
				if n, is := e.Cap[escrow.OpportunisticType]; is {
					fmt.Fprintf(w, "%s holds %d of its maximum of %d opportunistic containers, %s, and needs %d\n", e.Member,
						n, e.Maximum[escrow.OpportunisticType], lasts, e.Needs[escrow.OpportunisticType])
					continue
				}
				fmt.Fprintf(w, "%s holds %d MiB of %s, %s, and needs %d MiB\n", e.Member,
					e.Cap[creel.MemoryName], of, lasts, e.Needs[creel.MemoryName])
			}
			shown := 0
			for _, d := range state.Decisions {
				if d.Queue == found.Queue && shown < 5 {
					shown++
					at := d.At.Format(time.TimeOnly)
					if d.Label != "" {
						at += " on nodes of label " + d.Label
					}
					fmt.Fprintf(
						w,
						"%s: %s to %s, %s\n",
						at,
						percent(d.Was),
						percent(d.Is),
						d.Reason,
					)
				}
			}
			return nil
		})
	}
	return c
}

// tellPlan prints a queue's entitlement on the nodes of a label.
func tellPlan(w io.Writer, q *subcluster.QueuePlan, label string) {
	of := "the federation"
	if label != "" {
		of = "its nodes of label " + label
	}
	fmt.Fprintf(w, "%s is entitled to %s of %s: %s\n", q.Queue, percent(q.Entitled), of, q.Reason)
	fmt.Fprintf(w, "it wants %s and uses %s\n", percent(q.Wants), percent(q.Uses))
	for _, m := range q.Members {
		fmt.Fprintf(w, "  %s in %s\n", percent(m.Given), m.Member)
	}
}

// tellPlanned prints the members whose queue capacity on the nodes of a label comes from the plan.
func tellPlanned(w io.Writer, queues []rebalancer.QueueState, path creel.QueuePath, label string) {
	for i := range queues {
		q := &queues[i]
		if q.Queue != path || q.Label != label {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(q.Planned)) {
			fmt.Fprintf(w, "%s guarantees it %s by the plan, and %s as configured\n", id, amountsText(q.Planned[id]),
				amountsText(q.Members[id]))
		}
	}
}

var decisionColumns = []column[rebalancer.Decision]{
	{"TIME", false, func(d rebalancer.Decision) string { return d.At.Format(time.RFC3339) }},
	{"TERM", true, func(d rebalancer.Decision) string { return strconv.FormatInt(d.Term, 10) }},
	{"QUEUE", false, func(d rebalancer.Decision) string { return onNodes(d.Queue, d.Label) }},
	{"WAS", false, func(d rebalancer.Decision) string { return percent(d.Was) }},
	{"IS", false, func(d rebalancer.Decision) string { return percent(d.Is) }},
	{"WANTS", false, func(d rebalancer.Decision) string { return percent(d.Wants) }},
	{"USES", false, func(d rebalancer.Decision) string { return percent(d.Uses) }},
	{"MOVED", false, func(d rebalancer.Decision) string { return d.Moved }},
	{"CAPACITY", true, func(d rebalancer.Decision) string { return d.Capacity }},
	{"REASON", false, func(d rebalancer.Decision) string { return d.Reason }},
}

func rebalancerHistory() *cobra.Command {
	var f clientFlags
	var limit int
	c := &cobra.Command{
		Use: "history", Short: "list the changes by plans, newest first", Args: noArguments,
	}
	f.register(c)
	c.Flags().IntVar(&limit, "limit", 40, "at most `N` changes")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit < 1 {
			return usage(fmt.Errorf("--limit %d: at least 1", limit))
		}
		state, err := f.rebalancer(c.Context())
		if err != nil {
			return err
		}
		return printList(
			c.OutOrStdout(),
			f.printer,
			state.Decisions[:min(limit, len(state.Decisions))],
			decisionColumns,
		)
	}
	return c
}

var auditColumns = []column[rebalancer.InvariantCount]{
	{"INVARIANT", false, func(i rebalancer.InvariantCount) string { return i.Name }},
	{"CHECKED", false, func(i rebalancer.InvariantCount) string { return strconv.FormatInt(i.Checked, 10) }},
	{"BROKEN", false, func(i rebalancer.InvariantCount) string { return strconv.FormatInt(i.Broken, 10) }},
}

func rebalancerAudit() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "audit", Short: "check the federation's invariants against the members' reports", Args: noArguments,
	}
	f.register(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		state, err := f.rebalancer(c.Context())
		if err != nil {
			return err
		}
		a := state.Audited
		if a == nil {
			return errNoAudit
		}
		err = printList(c.OutOrStdout(), f.printer, a.Invariants, auditColumns)
		if err != nil || f.printer.format != "table" {
			return err
		}
		text := c.OutOrStdout()
		fmt.Fprintf(text, "%d looks of %s, the last at %s\n", a.Looks, a.Leader, a.At.Format(time.RFC3339))
		for _, b := range a.Breaches {
			fmt.Fprintf(text, "%s %s of %s: %s\n", b.At.Format(time.RFC3339), b.Invariant, b.Of, b.Breach)
		}
		return nil
	}
	return c
}

var errNoAudit = &exitError{
	exitNotFound, errors.New("no rebalancer has audited: set creel.rebalancer.audit.interval where one runs"),
}

func rebalancerPause(pause bool) *cobra.Command {
	var f clientFlags
	var reason string
	c := &cobra.Command{Use: "resume", Short: "let plans be published again", Args: noArguments}
	if pause {
		c.Use, c.Short = "pause", "stop publishing plans: when the last one's lease is over all is decided without one"
	}
	f.register(c)
	if pause {
		c.Flags().StringVar(&reason, "reason", "", "why, for others")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		order := map[string]any{"paused": pause, "reason": reason}
		if _, err := f.call(c.Context(), http.MethodPut, "/api/v1/rebalancer/paused", nil, order, nil); err != nil {
			return err
		}
		became := map[bool]string{true: "paused", false: "resumed"}[pause]
		return printOne(c.OutOrStdout(), f.printer, map[string]bool{"paused": pause}, became, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, became)
			return err
		})
	}
	return c
}

// escrowLine is one member's part of a queue's maximum, or of a user's limit in the queue.
type escrowLine struct {
	Queue   creel.QueuePath    `json:"queue"`
	Label   string             `json:"label,omitempty"`
	User    string             `json:"user,omitempty"` // "*": each user not named
	Maximum string             `json:"maximum"`
	Member  creel.SubclusterID `json:"member"`
	Cap     string             `json:"cap"`
	Needs   string             `json:"needs"`
	Share   string             `json:"share"`
	Ends    string             `json:"ends"`
}

var escrowColumns = []column[escrowLine]{
	{"QUEUE", false, func(e escrowLine) string { return string(e.Queue) }},
	{"LABEL", false, func(e escrowLine) string { return e.Label }},
	{"USER", false, func(e escrowLine) string { return e.User }},
	{"MAXIMUM", false, func(e escrowLine) string { return e.Maximum }},
	{"MEMBER", false, func(e escrowLine) string { return string(e.Member) }},
	{"CAP", false, func(e escrowLine) string { return e.Cap }},
	{"NEEDS", false, func(e escrowLine) string { return e.Needs }},
	{"SHARE", false, func(e escrowLine) string { return e.Share }},
	{"LEASE", false, func(e escrowLine) string { return e.Ends }},
}

func rebalancerEscrow() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{
		Use: "escrow", Short: "show the members' shares of federation-wide maxima and user limits", Args: noArguments,
	}
	f.register(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var maxima, users []operator.Escrow
		if len(f.conf.flags) > 0 {
			past := storeFlags{confFlags: f.conf, printer: f.printer}
			if err := past.with(c.Context(), func(ctx context.Context, store statestore.Store) (err error) {
				maxima, users, err = operator.ReadEscrow(ctx, store)
				return err
			}); err != nil {
				return err
			}
		} else {
			state, err := f.rebalancer(c.Context())
			if err != nil {
				return err
			}
			maxima, users = state.Escrow, state.UserLimits
		}
		var lines []escrowLine
		for _, e := range slices.Concat(maxima, users) {
			ends := "over"
			if e.Lasts != "" {
				ends = e.Lasts
			} else if e.LeaseSeconds > 0 {
				ends = units.Age(e.LeaseSeconds)
			}
			lines = append(lines, escrowLine{
				e.Queue, e.Label, e.User, amount(e.Maximum), e.Member, amount(e.Cap), amount(e.Needs),
				amount(e.Share), ends,
			})
		}
		return printList(c.OutOrStdout(), f.printer, lines, escrowColumns)
	}
	return c
}

// amount omits resources that a maximum does not limit.
func amount(a subcluster.Amounts) string {
	if a[creel.VCoresName] >= 1<<40 { // a part of an unlimited amount
		return fmt.Sprintf("%d MiB", a[creel.MemoryName])
	}
	return amountsText(rebalancer.Amounts(a))
}
