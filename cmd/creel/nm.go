// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	"github.com/go-chi/chi/v5"
	"github.com/spf13/cobra"
)

// farmConfig is the simulated nodes of a process, from settings.
func farmConfig(s *settings.Settings) nmrpc.Config {
	return nmrpc.Config{
		Tracker: s.Address("yarn.resourcemanager.resource-tracker.address"),
		Nodes:   s.Int("creel.nm.simulate"),
		Total:   creel.NewResource(s.Long("creel.nm.simulate.memory-mb"), s.Long("creel.nm.simulate.vcores")),
		Connections: s.Int(
			"creel.nm.simulate.connections",
		),
		RunTime: s.Duration("creel.nm.simulate.run-time"),
		Seed:    uint64(time.Now().UnixNano()),
		Logger:  slog.Default(),
	}
}

func nmCommand() *cobra.Command {
	var f daemonFlags
	var simulate, first int
	c := daemonCommand(
		"nm",
		"simulated NodeManagers, thousands in one process",
		&f,
		func(_ context.Context, s *settings.Settings, _ *daemonFlags) (*daemon, error) {
			conf := farmConfig(s)
			if simulate > 0 {
				conf.Nodes = simulate
			}
			conf.First = first
			if conf.Nodes <= 0 {
				return nil, usage(fmt.Errorf("say how many nodes to simulate: --simulate N"))
			}
			farm, err := nmrpc.New(conf)
			if err != nil {
				return nil, err
			}
			h := newHealth()
			m := farm.Metrics()
			h.counter(
				"creel_nm_heartbeats_total",
				"Heartbeats sent.",
				func() float64 { return float64(m.Beats.Load()) },
			)
			h.counter(
				"creel_nm_heartbeat_errors_total",
				"Heartbeats that failed.",
				func() float64 { return float64(m.BeatErrors.Load()) },
			)
			h.counter(
				"creel_nm_containers_started_total",
				"Containers started.",
				func() float64 { return float64(m.Started.Load()) },
			)
			h.counter(
				"creel_nm_containers_finished_total",
				"Containers that ended.",
				func() float64 { return float64(m.Finished.Load()) },
			)
			mux := chi.NewRouter()
			h.mount(mux)
			web, runWeb, err := webServer("127.0.0.1:0", mux)
			if err != nil {
				return nil, err
			}
			return &daemon{
				entries: []readyEntry{own(readyEntry{Role: "nm", Addresses: map[string]string{"web": web}})},
				health:  h,
				parts:   []part{{"simulated nodes", farm.Run}, {"web door", runWeb}},
			}, nil
		},
	)
	c.Flags().IntVar(&simulate, "simulate", 0, "simulate `N` nodes")
	c.Flags().IntVar(&first, "first", 0, "number of the first node, so that processes beside each other differ")
	return c
}
