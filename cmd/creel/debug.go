// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/creelrm/creel/internal/settings"
)

// debugDoor adds /debug/pprof on a listener of its own where one is asked for.
// It is taken on loopback only: profiles show what a process holds.
func (d *daemon) debugDoor(s *settings.Settings) error {
	address := s.Address("creel.debug.address")
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usage(fmt.Errorf("creel.debug.address %q: %w", address, err))
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usage(fmt.Errorf("creel.debug.address %q: give a loopback address, such as 127.0.0.1:6060", address))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	at, run, err := webServer(address, mux)
	if err != nil {
		return err
	}
	if len(d.entries) > 0 {
		d.entries[0].Addresses["debug"] = at
	}
	d.add("debug door", run)
	return nil
}
