// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/app/demo"
)

func loadDay() *cobra.Command {
	day := demo.Day{Subclusters: 1}
	var servers []string
	var anywhere bool
	c := &cobra.Command{
		Use:   "day",
		Short: "the jobs of a recorded day, at their times, to a federation of simulated nodes",
		Long: `Submits the jobs of a recorded day through routers, each by its own user at its own time, and prints its
progress. A job becomes an application as of creel run: a container for each of its tasks, all asked for at once,
each as long as the average task of that job. It ends after the last submission, not after the last completion.`,
		Example: `  creel load day --speed 20
  creel load day --server http://127.0.0.1:8089 --trace fb2009-1 --hours 9-17 --speed 60 --nodes 600`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var routers []string
			for _, s := range servers {
				u, err := url.Parse(s)
				if err != nil || u.Scheme != "http" || u.Port() == "" {
					return usage(fmt.Errorf("--server %s: give a router's web address, such as http://127.0.0.1:8089", s))
				}
				at, err := netip.ParseAddr(u.Hostname())
				if loopback := u.Hostname() == "localhost" || err == nil && at.IsLoopback(); !loopback && !anywhere {
					return usage(fmt.Errorf("%s is not a loopback address, and load harms other users of a server; "+
						"if it is yours, give --force", u.Host))
				}
				routers = append(routers, u.Host)
			}
			if day.Speed <= 0 {
				return usage(fmt.Errorf("--speed %g: give how many times faster than it was recorded", day.Speed))
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			r, err := demo.SubmitElsewhere(ctx, day, routers, c.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := json.NewEncoder(c.OutOrStdout()).Encode(r); err != nil {
				return err
			}
			switch {
			case r.Accepted == 0:
				return &exitError{exitUnreachable, fmt.Errorf("no job was taken: %s", r.FirstText)}
			case r.Refused > 0:
				return &exitError{
					exitPartial, fmt.Errorf("%d of %d jobs were refused: %s", r.Refused, r.Jobs, r.FirstText),
				}
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringArrayVar(&servers, "server", []string{"http://127.0.0.1:8089"}, "web `URL` of a router; several take turns")
	fl.StringVar(&day.Trace, "trace", "fb2009-1", "a recorded day, or a `FILE` with SWIM's columns")
	fl.StringVar(&day.Hours, "hours", "0-24", "`FROM-TO` of the day")
	fl.Float64Var(&day.Speed, "speed", 1, "`X` times faster than it was recorded")
	fl.IntVar(&day.Nodes, "nodes", 600, "`N` nodes in the whole federation: how large the jobs are")
	fl.Uint64Var(&day.Seed, "seed", 1, "seed for values that are not recorded")
	fl.BoolVar(&anywhere, "force", false, "take addresses that are not loopback ones")
	return c
}
