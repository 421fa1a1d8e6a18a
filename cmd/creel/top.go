// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
)

// topDoc is the answer of `creel top`: the federation's state, and the members, queues and applications that use most.
type topDoc struct {
	Overview     rest.OverviewDoc     `json:"overview"`
	Subclusters  []rest.SubclusterDoc `json:"subclusters"`
	Queues       []queueDoc           `json:"queues"`
	Applications []apps.Row           `json:"applications"`
	Missing      []string             `json:"missing"` // members that are not in the applications
}

func topCommand() *cobra.Command {
	var f clientFlags
	var q appQuery
	var once bool
	c := daily("top", "watch the members, queues and applications that use most")
	c.Long = `Shows the worst finding of the federation, and the members, queues and applications
that use most of it. On a terminal it is drawn again every two seconds until you
press Ctrl-C; elsewhere, with --once and in JSON or YAML it is written once.`
	c.RunE = func(c *cobra.Command, _ []string) error {
		by, err := appOrder(q.order)
		if err != nil {
			return err
		}
		if q.limit < 1 {
			return usage(fmt.Errorf("--limit %d: at least 1", q.limit))
		}
		watch := !once && terminal(c.OutOrStdout()) && f.printer.format == "table"
		return repeat(c, watch, func(out io.Writer) error {
			doc, err := f.top(c.Context(), q, by)
			if err != nil {
				return err
			}
			err = printOne(out, f.printer, doc, string(doc.Overview.State), func(w io.Writer) error {
				return writeTop(w, f.printer, &doc)
			})
			if err == nil && len(doc.Missing) > 0 && !watch {
				return &exitError{exitPartial, fmt.Errorf("partial: missing %s", doc.Missing[0])}
			}
			return err
		})
	}
	f.register(c)
	c.Flags().StringVar(&q.queue, "queue", "", "only applications in this `QUEUE`")
	c.Flags().StringVar(&q.user, "of", "", "only applications of this `USER`")
	c.Flags().StringVar(&q.order, "sort", "memory",
		"`ORDER` of applications: memory, containers, started, name, user, queue or state")
	c.Flags().IntVar(&q.limit, "limit", 10, "at most `N` queues and applications")
	c.Flags().BoolVar(&once, "once", false, "write it once, also on a terminal")
	return c
}

// top reads everything that one screen shows.
func (f *clientFlags) top(
	ctx context.Context,
	q appQuery,
	by func(a, b apps.Row) int,
) (doc topDoc, err error) {
	if doc.Overview, err = f.overview(ctx); hasNoSuch(err) {
		return doc, &exitError{exitNotFound, errors.New("this server has no federation: name a router by --server")}
	} else if err != nil {
		return doc, err
	}
	var members rest.SubclustersDoc
	if _, err := f.call(ctx, http.MethodGet, "/api/v1/subclusters", nil, nil, &members); err != nil {
		return doc, err
	}
	doc.Subclusters = members.Subclusters
	if doc.Queues, _, err = f.queueSnapshot(ctx); err != nil {
		return doc, err
	}
	doc.Queues = leaves(doc.Queues)
	slices.SortStableFunc(doc.Queues, func(a, b queueDoc) int { return cmp.Compare(b.Used, a.Used) })
	doc.Queues = doc.Queues[:min(q.limit, len(doc.Queues))]
	q.states = []string{"running", "waiting"}
	found, head, err := f.apps(ctx, q)
	if err != nil {
		return doc, err
	}
	doc.Applications, doc.Missing = q.first(found, by), head.Values("X-Missing-SubClusters")
	return doc, nil
}

// leaves drops parents, whose use is their children's. Parents stand before their children.
func leaves(list []queueDoc) (out []queueDoc) {
	for i, q := range list {
		if i+1 == len(list) || !strings.HasPrefix(list[i+1].Path, q.Path+".") {
			out = append(out, q)
		}
	}
	return out
}

func writeTop(w io.Writer, p printer, doc *topDoc) error {
	writeHeadline(w, &doc.Overview)
	sum := doc.Overview.Sum
	fmt.Fprintf(w, "%-9s memory %s of %s, vcores %d of %d, %d containers on %d nodes\n", "use",
		units.Memory(sum.AllocatedMB), units.Memory(sum.TotalMB),
		sum.AllocatedVirtualCores, sum.TotalVirtualCores, sum.ContainersAllocated, sum.ActiveNodes)
	if a := doc.Overview.Apps; a != nil {
		fmt.Fprintf(w, "%-9s %d run, %d wait\n", "apps", a.Running, a.Waiting)
	}
	fmt.Fprintln(w)
	if err := printList(w, p, doc.Subclusters, topMemberColumns); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := printList(w, p, doc.Queues, queueColumns); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return printList(w, p, doc.Applications, topAppColumns)
}

var topMemberColumns = []column[rest.SubclusterDoc]{
	{"SUBCLUSTER", false, func(s rest.SubclusterDoc) string { return string(s.ID) }},
	{"STATE", false, func(s rest.SubclusterDoc) string { return s.State }},
	{"NODES", false, func(s rest.SubclusterDoc) string { return strconv.FormatInt(s.Metrics.ActiveNodes, 10) }},
	{"MEMORY", false, func(s rest.SubclusterDoc) string {
		return partOf(s.Metrics.AllocatedMB, s.Metrics.TotalMB) + " of " + units.Memory(s.Metrics.TotalMB)
	}},
	{"VCORES", false, func(s rest.SubclusterDoc) string {
		return partOf(s.Metrics.AllocatedVirtualCores, s.Metrics.TotalVirtualCores) + " of " +
			strconv.FormatInt(s.Metrics.TotalVirtualCores, 10)
	}},
	{"RUN", false, func(s rest.SubclusterDoc) string { return strconv.FormatInt(s.Apps.Running, 10) }},
	{"WAIT", false, func(s rest.SubclusterDoc) string { return strconv.FormatInt(s.Apps.Waiting, 10) }},
	{"CONTAINERS", false, func(s rest.SubclusterDoc) string {
		return strconv.FormatInt(s.Metrics.ContainersAllocated, 10)
	}},
}

// topAppColumns are those of `creel app list` that fit on a screen, with the use in between.
var topAppColumns = slices.Concat(
	columnsNamed(appListColumns, "ID", "NAME", "USER", "QUEUE", "HOME"),
	[]column[apps.Row]{
		{"MEMORY", false, func(a apps.Row) string { return units.Memory(max(a.MemoryMB, 0)) }},
		{"VCORES", false, func(a apps.Row) string { return strconv.FormatInt(max(a.VCores, 0), 10) }},
	},
	columnsNamed(appListColumns, "CONTAINERS", "AGE", "WAITS-FOR"),
)

// columnsNamed returns the columns with these titles, in their order of the list.
func columnsNamed[T any](all []column[T], titles ...string) (out []column[T]) {
	for _, c := range all {
		if slices.Contains(titles, c.title) {
			out = append(out, c)
		}
	}
	return out
}

func partOf(part, all int64) string {
	if all <= 0 {
		return "-"
	}
	return strconv.FormatInt(part*100/all, 10) + "%"
}
