// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

const mendsPath = queueTreePath + "/mends"

var mendColumns = []column[operator.MendReport]{
	{"VERSION", false, func(m operator.MendReport) string { return strconv.FormatInt(m.Version, 10) }},
	{"TIME", false, func(m operator.MendReport) string { return m.Time.Format(time.RFC3339) }},
	{"AUTHOR", false, func(m operator.MendReport) string { return m.Author }},
	{"CHANGES", false, func(m operator.MendReport) string {
		changes, members := 0, 0
		for i := range m.Members {
			if n := len(m.Members[i].Changes); n > 0 {
				changes, members = changes+n, members+1
			}
		}
		return fmt.Sprintf("%d in %d members", changes, members)
	}},
	{"COMMENT", false, func(m operator.MendReport) string { return m.Comment }},
}

func queueMend() *cobra.Command {
	var f clientFlags
	var order operator.MendOrder
	var only []string
	var history bool
	c := &cobra.Command{
		Use:   "mend",
		Short: "change the members' queues to match the federation's queue tree",
		Long: `Compares the queues in force in each member with the federation's queue tree: their
guarantees, the members' own maxima, queues that a member lacks. Shows the differences
(--dry-run) and changes them through the member's scheduler-conf, creel's or Hadoop's,
where yarn.scheduler.configuration.store.class of that member allows it.

--undo reverts a mend in members whose queues have not changed since.`,
		Args: noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if history {
			var doc rest.MendsDoc
			if _, err := f.call(c.Context(), http.MethodGet, mendsPath, url.Values{}, nil, &doc); err != nil {
				return err
			}
			return printList(c.OutOrStdout(), f.printer, doc.Mends, mendColumns)
		}
		if c.Flags().Changed("undo") && order.Undo < 1 {
			return usage(fmt.Errorf("--undo %d: versions begin with 1; see `creel queue mend --history`", order.Undo))
		}
		order.Members = []creel.SubclusterID{}
		for _, id := range only {
			order.Members = append(order.Members, creel.SubclusterID(id))
		}
		var made operator.MendReport
		if _, err := f.call(c.Context(), http.MethodPost, mendsPath, nil, order, &made); err != nil {
			return err
		}
		err := printOne(c.OutOrStdout(), f.printer, made, strconv.FormatInt(made.Version, 10), func(w io.Writer) error {
			return printMend(w, &made, order.DryRun)
		})
		if err == nil && made.Failed() > 0 {
			err = &exitError{exitPartial, errors.New(notAll(order))}
		}
		return err
	}
	f.register(c)
	c.Flags().BoolVar(&order.DryRun, "dry-run", false, "show the changes without making them")
	c.Flags().StringSliceVar(&only, "subcluster", nil, "only in these `SUBCLUSTERS`")
	c.Flags().StringVar(&order.Comment, "comment", "", "why, for the history")
	c.Flags().Int64Var(&order.Undo, "undo", 0, "take back the mend of this `VERSION`")
	c.Flags().BoolVar(&history, "history", false, "list past mends, newest first")
	return c
}

// printMend prints the changes in each member.
func printMend(w io.Writer, made *operator.MendReport, dryRun bool) error {
	changes := 0
	for i := range made.Members {
		m := &made.Members[i]
		for _, c := range m.Changes {
			changes++
			switch {
			case c.Remove:
				fmt.Fprintf(w, "%s: %s is removed (%s)\n", m.Member, c.Queue, c.Why)
			case c.Add:
				fmt.Fprintf(w, "%s: + %s %s %s (%s)\n", m.Member, c.Queue, c.Key, c.Is, c.Why)
			default:
				from, to := orNone(c.Was), orNone(c.Is)
				fmt.Fprintf(w, "%s: %s %s %s -> %s (%s)\n", m.Member, c.Queue, c.Key, from, to, c.Why)
			}
		}
		for _, n := range m.Notes {
			fmt.Fprintf(w, "%s: %s\n", m.Member, n)
		}
		if m.Error != "" {
			fmt.Fprintf(w, "%s: %s\n", m.Member, m.Error)
		}
	}
	text := fmt.Sprintf("changed; creel queue mend --undo %d takes it back", made.Version)
	switch {
	case changes == 0 && made.Failed() == len(made.Members):
		text = "no member's queues could be compared"
	case changes == 0 && made.Failed() > 0:
		text = "nothing is to be changed in the other members"
	case changes == 0:
		text = "nothing is to be changed"
	case dryRun:
		text = "nothing was changed"
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// notAll describes the gaps of a mend in which some members took no part.
func notAll(order operator.MendOrder) string {
	if order.DryRun {
		return "not all members' queues could be compared"
	}
	return "not all members match the document"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
