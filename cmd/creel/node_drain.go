// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

// hostChange is a command that takes hosts out or in: by a call through a router, or by the file of excluded hosts.
type hostChange struct {
	use      string
	graceful bool // the host's containers end by themselves
	in       bool // hosts are taken in again

	admin   adminFlags
	router  clientFlags
	file    string // of excluded hosts
	reason  string
	patient time.Duration
	dryRun  bool
	wait    bool
}

func nodeDrain() *cobra.Command {
	return (&hostChange{use: "drain", graceful: true}).command(
		"give hosts no new containers, and decommission them when theirs have ended")
}

func nodeDecommission() *cobra.Command {
	return (&hostChange{use: "decommission"}).command("take hosts out now; their containers are lost")
}

func nodeRecommission() *cobra.Command {
	return (&hostChange{use: "recommission", in: true}).command("take hosts in again")
}

func (h *hostChange) command(short string) *cobra.Command {
	c := &cobra.Command{
		Use: h.use + " HOST...", Short: short, Args: between(1, math.MaxInt, "at least one host"),
		Long: short + `.

Through a router, creel's ResourceManager keeps the order in its journal; hosts
of one of Hadoop's need the file of excluded hosts. With --conf DIR, which must
be the ResourceManager's own, or with --exclude-file FILE, the command changes
that file (yarn.resourcemanager.nodes.exclude-path), and has the ResourceManager
read it.`,
		RunE: h.run,
	}
	h.admin.register(c)
	fl := c.Flags()
	fl.StringVar(&h.router.server, "server", "",
		"web `URL` of a router (default $CREEL_SERVER, the context's, or "+defaultServer+")")
	fl.StringVar(&h.file, "exclude-file", "", "the `FILE` of hosts (default yarn.resourcemanager.nodes.exclude-path)")
	fl.BoolVar(&h.dryRun, "dry-run", false, "through a router: show what runs on the hosts, and change nothing")
	if !h.in {
		fl.StringVar(&h.reason, "reason", "", "through a router: reason shown to operators")
	}
	if h.graceful {
		fl.DurationVar(&h.patient, "timeout", time.Hour, "decommission it with its running containers after this time")
		fl.BoolVar(&h.wait, "wait", false, "through a router: show the progress until the hosts are out")
	}
	return c
}

func (h *hostChange) run(c *cobra.Command, args []string) error {
	for i, host := range args {
		args[i], _, _ = strings.Cut(host, ":") // YARN decommissions hosts, not ports
	}
	if h.file != "" || h.admin.conf.dir != "" || h.admin.address != "" {
		if h.dryRun || h.wait || h.reason != "" {
			return usage(errors.New("--dry-run, --wait and --reason work through a router, without --conf, --admin and --exclude-file"))
		}
		return h.byFile(c, args)
	}
	h.router.user, h.router.as, h.router.timeout = h.admin.user, h.admin.as, h.admin.timeout
	h.router.printer = printer{"table"}
	for _, host := range args {
		if err := h.byRouter(c, host); err != nil {
			return err
		}
	}
	if h.wait {
		return h.router.untilOut(c, args, h.admin.subcluster)
	}
	return nil
}

// byRouter changes one host, or shows what runs there.
func (h *hostChange) byRouter(c *cobra.Command, host string) error {
	method, body := http.MethodPut, any(subcluster.DrainOrder{
		AtOnce: !h.graceful, TimeoutSeconds: h.patient.Seconds(), Reason: h.reason,
	})
	if h.in {
		method, body = http.MethodDelete, nil
	}
	if h.dryRun {
		method, body = http.MethodGet, nil
	}
	doc, err := h.router.host(c.Context(), method, host, h.admin.subcluster, body)
	if err != nil {
		return err
	}
	prefix := h.use
	if h.dryRun {
		prefix = "would " + h.use
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s\n", prefix, hostText(doc, h.dryRun))
	return err
}

// host makes one call about a host.
func (f *clientFlags) host(
	ctx context.Context, method, host, member string, in any,
) (doc subcluster.HostDoc, err error) {
	q := url.Values{}
	if member != "" {
		q.Set("subcluster", member)
	}
	_, err = f.call(ctx, method, "/api/v1/drains/"+url.PathEscape(host), q, in, &doc)
	return doc, err
}

// untilOut waits until no container runs on drained hosts. It prints a line whenever the remainder changes.
func (f *clientFlags) untilOut(c *cobra.Command, hosts []string, member string) error {
	shown := newProgress(c.OutOrStdout(), 0)
	defer shown.clear()
	for _, host := range hosts {
		for {
			doc, err := f.host(c.Context(), http.MethodGet, host, member, nil)
			switch {
			case c.Context().Err() != nil:
				return c.Context().Err()
			case err != nil && exitCode(err) != exitUnreachable:
				return err
			case err == nil && doc.Drain == nil:
				return &exitError{exitConflict, fmt.Errorf("the drain of %s was cancelled", host)}
			case err == nil && out(doc):
				shown.line(hostText(doc, false))
			case err == nil:
				shown.show(hostText(doc, false))
			}
			if err == nil && out(doc) {
				break
			}
			select {
			case <-c.Context().Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}
	return nil
}

// out reports whether no node of a host runs any more.
func out(doc subcluster.HostDoc) bool {
	for _, n := range doc.Nodes {
		if n.State == creel.NodeDecommissioning.String() || n.State == creel.NodeRunning.String() || n.Containers > 0 {
			return false
		}
	}
	return true
}

// hostText is one line about a host, with its applications if asked for.
func hostText(doc subcluster.HostDoc, apps bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s:", doc.Host, doc.Member)
	if len(doc.Nodes) == 0 {
		b.WriteString(" no node")
	}
	for i, n := range doc.Nodes {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s", n.State)
		if len(doc.Nodes) > 1 {
			fmt.Fprintf(&b, " (%s)", n.ID)
		}
		fmt.Fprintf(&b, " with %s", counted(n.Containers, "container"))
		if n.AMs > 0 {
			fmt.Fprintf(&b, ", %s among them", counted(n.AMs, "AM"))
		}
		if n.LeavesIn != nil {
			fmt.Fprintf(&b, "; it leaves within %s", units.Age(*n.LeavesIn))
		}
		for _, a := range n.Applications {
			if apps {
				fmt.Fprintf(&b, "\n  %s %s", a.ID, counted(a.Containers, "container"))
				if a.AM {
					b.WriteString(", its AM among them")
				}
			}
		}
	}
	return b.String()
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// byFile edits the list of hosts to decommission. It then makes the ResourceManager reload that list.
func (h *hostChange) byFile(c *cobra.Command, hosts []string) error {
	f, file := &h.admin, h.file
	if file == "" {
		s, err := f.conf.load()
		if err != nil {
			return err
		}
		if file = s.String("yarn.resourcemanager.nodes.exclude-path"); file == "" {
			return usage(errors.New("missing list of hosts: set yarn.resourcemanager.nodes.exclude-path in --conf DIR, or give --exclude-file"))
		}
	}
	changed, err := editHosts(file, hosts, !h.in)
	if err != nil {
		return err
	}
	req := &pb.RefreshNodesRequestProto{SubClusterId: f.member()}
	if h.graceful {
		req.DecommissionType = pb.DecommissionTypeProto_GRACEFUL.Enum()
		req.DecommissionTimeout = proto.Int32(int32(h.patient.Seconds()))
	}
	err = f.do(c.Context(), func(ctx context.Context, at adminClient) error {
		_, err := at.RefreshNodes(ctx, req)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s was changed but not reloaded: %w; repeat with creel admin refresh-nodes", file, err)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d of %d hosts changed in %s\n", h.use, changed, len(hosts), file)
	return err
}

var drainColumns = []column[subcluster.HostDoc]{
	{"HOST", false, func(d subcluster.HostDoc) string { return d.Host }},
	{"SUBCLUSTER", false, func(d subcluster.HostDoc) string { return string(d.Member) }},
	{"NODES", false, func(d subcluster.HostDoc) string {
		var states []string
		for _, n := range d.Nodes {
			states = append(states, n.State)
		}
		return cmp.Or(strings.Join(states, ","), "-")
	}},
	{"CONTAINERS", false, func(d subcluster.HostDoc) string {
		n := 0
		for i := range d.Nodes {
			n += d.Nodes[i].Containers
		}
		return strconv.Itoa(n)
	}},
	{"SINCE", false, func(d subcluster.HostDoc) string { return d.Drain.Since.Local().Format(time.DateTime) }},
	{"BY", false, func(d subcluster.HostDoc) string { return d.Drain.By }},
	{"REASON", false, func(d subcluster.HostDoc) string { return cmp.Or(d.Drain.Reason, "-") }},
}

// nodeDrains lists the hosts that calls took out.
func nodeDrains() *cobra.Command {
	var f clientFlags
	var watch bool
	c := &cobra.Command{Use: "drains", Short: "list the hosts that were taken out through routers", Args: noArguments}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return repeat(c, watch, func(out io.Writer) error {
			var doc rest.HostsDoc
			head, err := f.call(c.Context(), http.MethodGet, "/api/v1/drains", nil, nil, &doc)
			if err != nil {
				return err
			}
			if err := printList(out, f.printer, doc.Hosts, drainColumns); err != nil {
				return err
			}
			for _, m := range doc.Missing {
				head.Set("X-Partial-Result", "true")
				head.Add("X-Missing-SubClusters", string(m.Member))
			}
			return partialExit(c, head)
		})
	}
	f.register(c)
	c.Flags().BoolVar(&watch, "watch", false, watchUsage)
	return c
}
