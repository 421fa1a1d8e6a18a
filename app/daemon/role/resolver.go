// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	resolver "github.com/creelrm/creel/subcluster/resolver/server"
)

// machineList reads the list that overrides the node lists published by members.
func machineList(s *settings.Settings) (*resolver.MachineList, error) {
	const key = "yarn.federation.machine-list"
	list, err := resolver.OpenMachineList(s.String(key))
	if err != nil {
		return nil, s.Problem(key, err.Error(), "or remove the key")
	}
	return list, nil
}

// addResolver adds the task that maintains the table of hosts' subclusters.
func addResolver(
	s *daemon.Service,
	store statestore.Store,
	view func() *subcluster.View,
	list *resolver.MachineList,
	log *slog.Logger,
) *resolver.Follower {
	f := &resolver.Follower{Store: store, View: view, List: list, Log: log}
	s.Health.Gauge(
		"creel_resolver_hosts",
		"Hosts with a known subcluster.",
		func() float64 { return float64(f.Hosts()) },
	)
	s.Health.Counter("creel_resolver_reads_total", "Lists of nodes that were read from the state store.", f.Reads)
	s.Add("hosts of the members", f.Run)
	return f
}
