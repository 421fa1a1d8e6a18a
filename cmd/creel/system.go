// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	dashpages "github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

var daemonColumns = []column[rest.DaemonRow]{
	{"NAME", false, func(d rest.DaemonRow) string { return d.Name }},
	{"KIND", false, func(d rest.DaemonRow) string { return d.Kind }},
	{"HOST", false, func(d rest.DaemonRow) string { return d.Host }},
	{"VERSION", false, func(d rest.DaemonRow) string { return d.Version }},
	{"READY", false, func(d rest.DaemonRow) string {
		if d.Ready {
			return "yes"
		}
		return "no: " + d.NotReady
	}},
	{"TOLD", false, func(d rest.DaemonRow) string { return units.Age(d.AgeSeconds) + " ago" }},
	{"WEB", false, func(d rest.DaemonRow) string { return d.Addresses["web"] }},
	{"OTHER-PORTS", true, func(d rest.DaemonRow) string {
		var ports []string
		for _, port := range slices.Sorted(maps.Keys(d.Addresses)) {
			if port != "web" {
				ports = append(ports, port+"="+d.Addresses[port])
			}
		}
		return strings.Join(ports, ",")
	}},
	{"STARTED", true, func(d rest.DaemonRow) string { return dashpages.Stamp(d.Started) }},
}

func systemCommand() *cobra.Command {
	var f clientFlags
	var kind string
	var watch bool
	c := daily("system", "show the routers, AM-RM proxies and rebalancers that live")
	c.Long = "Shows the routers, AM-RM proxies and rebalancers that live, as they tell of themselves in the state\n" +
		"store each ten seconds. One that stops is gone at once, one that dies after half a minute."
	c.RunE = func(c *cobra.Command, _ []string) error {
		return repeat(c, watch, func(out io.Writer) error {
			if !slices.Contains([]string{"", "router", "proxy", "rebalancer"}, kind) {
				return usage(fmt.Errorf("--kind %s: use router, proxy or rebalancer", kind))
			}
			all, doc, err := f.daemons(c.Context(), kind)
			if err != nil {
				return err
			}
			if err := printList(out, f.printer, all, daemonColumns); err != nil {
				return err
			}
			if len(doc.Versions) > 1 {
				var of []string
				for _, v := range slices.Sorted(maps.Keys(doc.Versions)) {
					of = append(of, fmt.Sprintf("%s (%d)", v, doc.Versions[v]))
				}
				fmt.Fprintln(c.ErrOrStderr(), "their versions differ: "+strings.Join(of, ", "))
			}
			if doc.Problem != "" {
				old := units.Age(doc.AgeSeconds)
				return &exitError{exitPartial, fmt.Errorf("as they were %s ago: %s", old, doc.Problem)}
			}
			return nil
		})
	}
	f.register(c)
	c.Flags().StringVar(&kind, "kind", "", "only `KIND`: router, proxy or rebalancer")
	c.Flags().BoolVar(&watch, "watch", false, watchUsage)
	return c
}

// daemons reads all pages of the daemons of a kind, "" for all. doc is the last page.
func (f *clientFlags) daemons(ctx context.Context, kind string) (all []rest.DaemonRow, doc rest.DaemonsDoc, err error) {
	q := url.Values{"limit": {"1000"}, "kind": {kind}}
	for {
		doc = rest.DaemonsDoc{}
		if _, err := f.call(ctx, http.MethodGet, "/api/v1/daemons", q, nil, &doc); err != nil {
			return nil, doc, err
		}
		all = append(all, doc.Daemons...)
		if doc.Next == "" {
			return all, doc, nil
		}
		q.Set("cursor", doc.Next)
	}
}
