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
	"strings"

	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

func statusCommand() *cobra.Command {
	var f clientFlags
	var watch bool
	c := daily("status", "show the state of the federation: the worst finding, its cause, a remedy")
	c.Long = "Shows the worst finding of the federation with its cause and a remedy, the numbers of applications, and\n" +
		"the reasons why applications wait. An application waits while it has no AM, or asks that are not granted."
	c.RunE = func(c *cobra.Command, _ []string) error {
		return repeat(c, watch, func(out io.Writer) error {
			doc, err := f.overview(c.Context())
			if hasNoSuch(err) {
				return &exitError{exitNotFound, errors.New("this server has no federation: name a router by --address")}
			}
			if err != nil {
				return err
			}
			err = printOne(out, f.printer, doc, string(doc.State), func(w io.Writer) error {
				writeStatus(w, &doc)
				return nil
			})
			if err == nil && len(doc.Missing) > 0 {
				return &exitError{exitPartial, fmt.Errorf("partial: missing %s (%s)",
					doc.Missing[0].Member, doc.Missing[0].Reason)}
			}
			return err
		})
	}
	f.register(c)
	c.Flags().BoolVar(&watch, "watch", false, watchUsage)
	return c
}

// overview reads the state of the federation as a router sees it.
func (f *clientFlags) overview(ctx context.Context) (doc rest.OverviewDoc, err error) {
	_, err = f.call(ctx, http.MethodGet, "/api/v1/overview", nil, nil, &doc)
	return doc, err
}

func writeStatus(w io.Writer, doc *rest.OverviewDoc) {
	writeHeadline(w, doc)
	line := func(name, format string, values ...any) {
		fmt.Fprintf(w, "%-9s %s\n", name, fmt.Sprintf(format, values...))
	}
	for i, q := range doc.Short {
		if i > 0 { // the headline has the first
			line("short", "%s has %.1f %% of its guaranteed %.1f %% for %s",
				q.Queue, q.Used, q.Guaranteed, units.Age(q.ForSeconds))
		}
	}
	var members []string
	for _, state := range slices.Sorted(maps.Keys(doc.Members)) {
		members = append(members, fmt.Sprintf("%d %s", doc.Members[state], state))
	}
	line("members", "%s", strings.Join(members, ", "))
	for _, g := range doc.Waiting {
		text := fmt.Sprintf("%d in %s", g.Applications, g.Queue)
		if g.Code != "" {
			text += " for " + g.Code
		}
		if g.In != "" && g.In != g.Queue {
			text += " in " + g.In
		}
		if g.OldestWait > 0 {
			text += ", the oldest for " + units.Age(g.OldestWait)
		}
		if g.Example != "" {
			text += ", such as " + g.Example
		}
		line("waiting", "%s", text)
	}
}

// headline writes the federation's worst finding above a table. A server without a federation has none.
func (f *clientFlags) headline(ctx context.Context, w io.Writer) {
	if f.printer.format != "table" && f.printer.format != "wide" {
		return
	}
	if doc, err := f.overview(ctx); err == nil {
		writeHeadline(w, &doc)
	}
}

// writeHeadline writes the worst finding and its remedy.
func writeHeadline(w io.Writer, doc *rest.OverviewDoc) {
	fmt.Fprintf(w, "%-9s %s\n", doc.State, doc.Sentence)
	if doc.Remedy != "" {
		fmt.Fprintf(w, "%-9s %s\n", "remedy", doc.Remedy)
	}
}
