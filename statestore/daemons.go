// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/creelrm/creel"
)

// Daemons are the running routers, AM-RM proxies and rebalancers: each stores a record of itself.
// No decision depends on these records; they are displayed.
type Daemons interface {
	// KeepDaemon makes or replaces the record of a daemon (Daemon.ID), which then expires after life. It returns
	// creel.ErrBusy if MaxDaemons other daemons have a live record. It does not wait for replicas: the next call
	// restores a record lost by a failover.
	KeepDaemon(ctx context.Context, d Daemon, life time.Duration) error
	// DropDaemon removes a daemon's record; a missing record is success.
	DropDaemon(ctx context.Context, d Daemon) error
	// Daemons lists the live records by ID, at most limit (1 to MaxPage) of them. The cursor of the
	// first page is "", of a later page the previous page's next; next is "" at the end. A page
	// before the end may be shorter than limit.
	Daemons(ctx context.Context, cursor string, limit int) (page []LiveDaemon, next string, err error)
}

// Daemon is a daemon's report about itself.
type Daemon struct {
	Kind      string            `json:"kind"` // router, proxy or rebalancer
	Name      string            `json:"name"`
	Host      string            `json:"host"`
	PID       int               `json:"pid"`
	Addresses map[string]string `json:"addresses"`       // by the name of the port, as in ready files
	HTTPS     bool              `json:"https,omitempty"` // the web port uses TLS
	Version   string            `json:"version"`         // of creel
	Started   time.Time         `json:"started"`         // by the daemon's own clock
	NotReady  string            `json:"not_ready,omitempty"`
}

// Scheme is http or https, of the web port.
func (d *Daemon) Scheme() string {
	if d.HTTPS {
		return "https"
	}
	return "http"
}

// LiveDaemon is a daemon and the age of its record, by the store's clock.
type LiveDaemon struct {
	Daemon
	Age time.Duration
}

// MaxDaemons limits the number of stored daemon records, MaxDaemon the length of one in bytes, as
// EncodeDaemon writes it.
const (
	MaxDaemons = 10000
	MaxDaemon  = 4096
)

// ID is the name of a daemon's record: two processes, and two daemons in one process, have different ones.
func (d *Daemon) ID() string { return d.Kind + " " + d.Name + " " + d.Host + " " + strconv.Itoa(d.PID) }

// CheckDaemon rejects records that a reader could not use.
func CheckDaemon(d *Daemon) error {
	for what, name := range map[string]string{"kind": d.Kind, "name": d.Name, "host": d.Host} {
		if err := CheckName(what+" of a daemon", name); err != nil {
			return err
		}
	}
	if d.PID < 0 {
		return bad("record of a daemon refused", "its process id is %d", d.PID)
	}
	return nil
}

// EncodeDaemon writes the record of a daemon, after checking that it can be stored for life.
func EncodeDaemon(d Daemon, life time.Duration) ([]byte, error) {
	if err := CheckDaemon(&d); err != nil {
		return nil, err
	}
	if life <= 0 {
		return nil, bad("record of a daemon refused", "its time to live is %v", life)
	}
	if err := CheckTTL(life); err != nil {
		return nil, err
	}
	b, err := json.Marshal(d)
	if err == nil && len(b) > MaxDaemon {
		err = bad("record of a daemon refused", "it has %d bytes, more than %d", len(b), MaxDaemon)
	}
	return b, err
}

// ParseDaemon reads the output of EncodeDaemon.
func ParseDaemon(data []byte) (Daemon, error) {
	var d Daemon
	if err := cmp.Or(json.Unmarshal(data, &d), CheckDaemon(&d)); err != nil {
		return d, Unreadable("a daemon", err)
	}
	return d, nil
}

// TooManyDaemons returns the error for a daemon's record beyond MaxDaemons.
func TooManyDaemons(d Daemon) error {
	return failf(creel.ErrBusy, "only the list of daemons needs the record",
		"the record of "+d.Kind+" "+d.Name+" was not stored", "%d daemons have one", MaxDaemons)
}
