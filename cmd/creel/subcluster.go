// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

func subclusterCommand() *cobra.Command {
	return daily(
		"subcluster",
		"list, drain and remove the members of the federation",
		subclusterList(),
		subclusterShow(),
		subclusterDrain(),
		subclusterUndrain(),
		subclusterDeregister(),
		subclusterRemove(),
	)
}

func subclusterList() *cobra.Command {
	var f clientFlags
	var watch bool
	c := &cobra.Command{Use: "list", Short: "list the members of the federation", Args: noArguments}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return repeat(c, watch, func(out io.Writer) error {
			var doc rest.SubclustersDoc
			if _, err := f.call(c.Context(), http.MethodGet, "/api/v1/subclusters", nil, nil, &doc); err != nil {
				return err
			}
			if doc.Frozen != "" {
				fmt.Fprintln(c.ErrOrStderr(), "creel: the view is frozen:", doc.Frozen)
			}
			type sub = rest.SubclusterDoc
			n := func(v func(sub) int64) func(sub) string {
				return func(s sub) string { return strconv.FormatInt(v(s), 10) }
			}
			return printList(out, f.printer, doc.Subclusters, []column[sub]{
				{"ID", false, func(s sub) string { return string(s.ID) }},
				{"STATE", false, func(s sub) string { return s.State }},
				{"REASON", false, reasonText},
				{"NODES", false, n(func(s sub) int64 { return s.Metrics.ActiveNodes })},
				{"RUNNING", false, n(func(s sub) int64 { return s.Apps.Running })},
				{"WAITING", false, n(func(s sub) int64 { return s.Apps.Waiting })},
				{"CONTAINERS", false, n(func(s sub) int64 { return s.Metrics.ContainersAllocated })},
				{"USED-MEMORY", false, func(s sub) string { return units.Memory(s.Metrics.AllocatedMB) }},
				{"TOTAL-MEMORY", false, func(s sub) string { return units.Memory(s.Metrics.TotalMB) }},
				{"EPOCH", true, n(func(s sub) int64 { return s.Epoch })},
				{"VERSION", true, func(s sub) string { return s.Version }},
				{"WEB", true, func(s sub) string { return s.Addresses.Web }},
				{"CUT-OFF", true, func(s sub) string { return strings.Join(s.CutOff, ",") }},
			})
		})
	}
	f.register(c)
	c.Flags().BoolVar(&watch, "watch", false, watchUsage)
	return c
}

// stateText is a member's state, with the reason if the member is not active. An active one's is its heartbeat.
func stateText(s rest.SubclusterDoc) string {
	if s.State == subcluster.StateActive.String() {
		return s.State
	}
	return s.State + " (" + s.Reason + ")"
}

// reasonText is the reason of a member's state, with the services that it refuses to the router.
func reasonText(s rest.SubclusterDoc) string {
	text := s.Reason
	for _, r := range s.Refuses {
		text += "; " + r.Text
	}
	return text
}

// memberArgument checks a subcluster's name before any request.
func memberArgument(text string) (creel.SubclusterID, error) {
	id := creel.SubclusterID(text)
	if err := subcluster.ValidID(id); err != nil {
		return "", usage(err)
	}
	return id, nil
}

// member finds a member in the router's view.
func (f *clientFlags) member(ctx context.Context, id creel.SubclusterID) (rest.SubclusterDoc, error) {
	var doc rest.SubclustersDoc
	if _, err := f.call(ctx, http.MethodGet, "/api/v1/subclusters", nil, nil, &doc); err != nil {
		return rest.SubclusterDoc{}, err
	}
	var names []string
	for _, s := range doc.Subclusters {
		if s.ID == id {
			return s, nil
		}
		names = append(names, string(s.ID))
	}
	return rest.SubclusterDoc{}, &exitError{
		exitNotFound,
		fmt.Errorf("there is no subcluster %s; there are %s", id, strings.Join(names, ", ")),
	}
}

func subclusterShow() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "show ID",
		Short: "show one member: its state, addresses, load, and how far a drain is",
		Args:  exactly(1, "one subcluster"), ValidArgsFunction: f.memberIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := memberArgument(args[0])
		if err != nil {
			return err
		}
		s, err := f.member(c.Context(), id)
		if err != nil {
			return err
		}
		return printOne(c.OutOrStdout(), f.printer, s, string(id), func(w io.Writer) error {
			line := func(name, format string, values ...any) {
				fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, values...))
			}
			line("subcluster", "%s", s.ID)
			line("state", "%s", stateText(s))
			if s.Drain != nil {
				line("drain", "%s", drainText(*s.Drain))
			}
			for _, r := range s.Refuses {
				line("refusal", "%s; try: %s", r.Text, r.Try)
			}
			line("heartbeat", "%s ago, epoch %d", units.Age(s.AgeSeconds), s.Epoch)
			line("version", "%s", s.Version)
			line("client", "%s", s.Addresses.Client)
			line("scheduler", "%s", s.Addresses.Scheduler)
			line("admin", "%s", s.Addresses.Admin)
			line("web", "%s", s.Addresses.Web)
			m := s.Metrics
			line("applications", "%d running, %d waiting", s.Apps.Running, s.Apps.Waiting)
			line("containers", "%d running, %d waiting", m.ContainersAllocated, m.ContainersPending)
			line("memory", "%s of %s used", units.Memory(m.AllocatedMB), units.Memory(m.TotalMB))
			line("vcores", "%d of %d used", m.AllocatedVirtualCores, m.TotalVirtualCores)
			line("nodes", "%d active, %d lost, %d unhealthy", m.ActiveNodes, m.LostNodes, m.UnhealthyNodes)
			if len(s.CutOff) > 0 {
				line("cut off", "this router makes no calls of kind %s now", strings.Join(s.CutOff, ", "))
			}
			return nil
		})
	}
	f.register(c)
	return c
}

// drainText describes the progress of a drain.
func drainText(d operator.DrainProgress) string {
	text := string(d.Mode)
	if d.By != "" {
		text += ", by " + d.By
	}
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	if d.Done {
		return text + ": nothing is left"
	}
	return fmt.Sprintf("%s: %d applications run, %d wait, %d containers", text, d.Running, d.Waiting, d.Containers)
}

func memberPath(id creel.SubclusterID) string {
	return "/api/v1/subclusters/" + url.PathEscape(string(id))
}

func subclusterDrain() *cobra.Command {
	var f clientFlags
	var mode, reason string
	var timeout time.Duration
	var dryRun bool
	c := &cobra.Command{
		Use:   "drain ID",
		Short: "give a member no new applications, and no new containers of those that span into it",
		Long: `Running applications of the member continue. With --mode finish the command waits
until the member is empty, and prints its progress; it can be stopped and repeated.
With --mode move, waiting applications without a granted container also move to other
members; --dry-run shows the moves. See creel rebalancer moves.`,
		Example: "  creel subcluster drain east --mode finish --reason \"new disks\"",
		Args:    exactly(1, "one subcluster"), ValidArgsFunction: f.memberIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := memberArgument(args[0])
		if err != nil {
			return err
		}
		wanted, err := operator.ParseMode(mode)
		if err != nil {
			return usage(err)
		}
		if dryRun {
			if wanted != operator.Move {
				return usage(errors.New("--dry-run shows the moves of --mode move: give both"))
			}
			m, err := f.moves(c.Context(), id)
			if err != nil {
				return err
			}
			return printNext(c, f.printer, m)
		}
		order := map[string]string{"mode": string(wanted), "reason": reason}
		var doc rest.DrainDoc
		if _, err := f.call(c.Context(), http.MethodPut, memberPath(id)+"/drain", nil, order, &doc); err != nil {
			return err
		}
		if doc.Warning != "" {
			fmt.Fprintln(c.ErrOrStderr(), "creel: warning:", doc.Warning)
		}
		if wanted == operator.Stop {
			fmt.Fprintf(c.OutOrStdout(), "%s gets no new work\n", id)
			return nil
		}
		return f.drained(c, id, timeout)
	}
	f.register(c)
	c.Flags().StringVar(&mode, "mode", "stop",
		"`MODE`: stop; finish, which waits until the member is empty; or move, which also moves waiting applications")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "with --mode move, show the moves without making them")
	c.Flags().StringVar(&reason, "reason", "", "reason shown to operators, one line")
	c.Flags().DurationVar(&timeout, "timeout", 0,
		"with --mode finish or move, stop waiting after this long (default: never)")
	return c
}

// drained waits until a drain is done. It prints a line whenever the remainder changes.
func (f *clientFlags) drained(c *cobra.Command, id creel.SubclusterID, timeout time.Duration) error {
	ctx := c.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	last, seen := "", false
	shown := newProgress(c.OutOrStdout(), 0)
	defer shown.clear()
	for {
		s, err := f.member(ctx, id)
		switch {
		case ctx.Err() != nil:
			if last == "" && err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return &exitError{exitUnreachable, fmt.Errorf("drain of %s: no report of its progress: %w", id, err)}
			}
			return &exitError{exitWaitFailed, fmt.Errorf("%s is not empty yet; its drain continues: %s", id, last)}
		case err != nil && exitCode(err) != exitUnreachable:
			return err
		case err == nil && s.Drain == nil && seen:
			return &exitError{exitConflict, fmt.Errorf("the drain of %s was cancelled", id)}
		case err == nil && s.Drain != nil:
			seen = true
			last = drainText(*s.Drain)
			if s.Drain.Done {
				shown.line(string(id) + " " + last)
				return nil
			}
			shown.show(string(id) + " " + last)
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// memberOrder returns a command that makes one call about one member.
func memberOrder(use, short, long, said, method, suffix string, body any) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:               use + " ID",
		Short:             short,
		Long:              long,
		Args:              exactly(1, "one subcluster"),
		ValidArgsFunction: f.memberIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := memberArgument(args[0])
		if err != nil {
			return err
		}
		if _, err := f.call(c.Context(), method, memberPath(id)+suffix, nil, body, nil); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s %s\n", id, said)
		return nil
	}
	f.register(c)
	return c
}

func subclusterUndrain() *cobra.Command {
	return memberOrder("undrain", "give a member new work again", "", "gets new work again",
		http.MethodDelete, "/drain", nil)
}

func subclusterDeregister() *cobra.Command {
	return memberOrder("deregister", "say goodbye for a member that stopped without doing so",
		`A member that still sends heartbeats would register again and is refused: stop its
ResourceManager or agent first.`, "is deregistered", http.MethodPost, "/deregister", struct{}{})
}

func subclusterRemove() *cobra.Command {
	return memberOrder("remove", "delete the record of a member that has deregistered or is long silent",
		`The homes of its applications stay on record: they are found again if it returns.`,
		"is removed", http.MethodDelete, "", nil)
}
