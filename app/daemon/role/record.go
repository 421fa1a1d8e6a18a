// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/build"
	"github.com/creelrm/creel/internal/ratelog"
	"github.com/creelrm/creel/statestore"
)

// A daemon renews its record in the store once per recordEvery, and within recordLook of a change of its readiness.
// The record of a dead daemon is listed for recordLife.
const (
	recordEvery = 10 * time.Second
	recordLook  = time.Second
	recordLife  = 3 * recordEvery
	recordTime  = 5 * time.Second // limit of one call
	recordWhy   = 1000            // bytes of the reason for not being ready
)

// record is the state that a daemon publishes in the store.
type record struct {
	of     *daemon.Service
	store  statestore.Daemons
	log    *slog.Logger
	daemon statestore.Daemon
	kept   time.Time // time of the last try
	away   bool      // the store did not accept it
	lost   ratelog.Line
}

// keepRecord adds the task that renews the record of an assembled daemon. The task ends last, so that a draining
// daemon is listed as not ready. name is unique among the process's daemons of a kind; "": the address of the client
// port. https: the web port uses TLS.
func keepRecord(s *daemon.Service, store statestore.Daemons, name string, https bool, log *slog.Logger) error {
	host, err := hostOf("")
	if err != nil {
		return err
	}
	e := s.Entries[0]
	d := statestore.Daemon{
		Kind: e.Role, Name: name, Host: host, PID: e.PID, Version: build.Read().Version,
		Addresses: map[string]string{}, HTTPS: https,
	}
	for port, address := range e.Addresses {
		d.Addresses[port] = fromElsewhere(address, host)
	}
	if name == "" {
		d.Name = d.Addresses["client"]
	}
	r := &record{of: s, store: store, log: log, daemon: d}
	s.Tasks = slices.Insert(s.Tasks, 0, daemon.Task{Name: "record in the store", Run: r.run})
	return nil
}

// fromElsewhere returns a bound address with the host's name if it is every interface.
func fromElsewhere(address, host string) string {
	at, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(at); err != nil || at != "" && (ip == nil || !ip.IsUnspecified()) {
		return address
	}
	return net.JoinHostPort(host, port)
}

func (r *record) run(ctx context.Context) error {
	r.daemon.Started = time.Now().UTC()
	tick := time.NewTicker(recordLook)
	defer tick.Stop()
	for before := ""; ; {
		line, why := notReady(r.of)
		if line != before || r.kept.IsZero() || time.Since(r.kept) >= recordEvery {
			before, r.daemon.NotReady = line, why
			r.keep(ctx)
		}
		select {
		case <-ctx.Done():
			r.drop(ctx)
			return nil
		case <-tick.C:
		}
	}
}

// notReady returns the first failing line of /readyz?verbose and its reason; "" if the daemon is ready.
func notReady(s *daemon.Service) (line, why string) {
	conditions, dependencies := s.Health.Lines()
	for _, l := range append(conditions, dependencies...) {
		if l.Err != nil {
			why = fmt.Sprintf("%s: %v", l.Name, l.Err)
			return l.Name, why[:min(len(why), recordWhy)]
		}
	}
	return "", ""
}

// keep tries once. If the store is away, the daemon only loses its record.
func (r *record) keep(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	r.kept = time.Now()
	err := r.store.KeepDaemon(limited, r.daemon, recordLife)
	if ctx.Err() != nil {
		return
	}
	if r.away = err != nil; !r.away {
		return
	}
	if count, write := r.lost.Happened(time.Now()); write {
		r.log.Warn("failed to store this daemon's record: lists of daemons lack it",
			"count", count, "error", err)
	}
}

// drop removes the record at a clean stop. If the last call to the store failed, it does not wait for the store.
func (r *record) drop(ctx context.Context) {
	if r.away {
		return
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.store.DropDaemon(bye, r.daemon) // else it expires
}
