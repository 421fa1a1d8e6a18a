// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
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
	Addresses map[string]string `json:"addresses"` // by the name of the port, as in ready files
	Version   string            `json:"version"`   // of creel
	Started   time.Time         `json:"started"`   // by the daemon's own clock
	NotReady  string            `json:"not_ready,omitempty"`
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
		return d, unreadable("a daemon", err)
	}
	return d, nil
}

// TooManyDaemons returns the error for a daemon's record beyond MaxDaemons.
func TooManyDaemons(d Daemon) error {
	return failf(creel.ErrBusy, "only the list of daemons needs the record",
		"the record of "+d.Kind+" "+d.Name+" was not stored", "%d daemons have one", MaxDaemons)
}

// keptDaemon is a record in memory.
type keptDaemon struct {
	record        []byte
	kept, expires time.Time
}

// KeepDaemon: see Daemons.
func (t *State) KeepDaemon(now time.Time, d Daemon, life time.Duration) error {
	record, err := EncodeDaemon(d, life)
	if err != nil {
		return err
	}
	for id, k := range t.daemons {
		if !now.Before(k.expires) {
			delete(t.daemons, id)
		}
	}
	if _, known := t.daemons[d.ID()]; !known && len(t.daemons) >= MaxDaemons {
		return TooManyDaemons(d)
	}
	t.daemons[d.ID()] = keptDaemon{record, now, now.Add(life)}
	return nil
}

// DropDaemon: see Daemons.
func (t *State) DropDaemon(d Daemon) error {
	if err := CheckDaemon(&d); err != nil {
		return err
	}
	delete(t.daemons, d.ID())
	return nil
}

// Daemons: see Daemons.
func (t *State) Daemons(now time.Time, cursor string, limit int) (page []LiveDaemon, next string, err error) {
	if err := CheckLimit(limit); err != nil {
		return nil, "", err
	}
	var ids []string
	for id, k := range t.daemons {
		if id > cursor && now.Before(k.expires) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) >= limit {
		ids, next = ids[:limit], ids[limit-1]
	}
	for _, id := range ids {
		k := t.daemons[id]
		d, err := ParseDaemon(k.record)
		if err != nil {
			return nil, "", err
		}
		page = append(page, LiveDaemon{d, now.Sub(k.kept)})
	}
	return page, next, nil
}

// KeepDaemon implements Daemons. An invalid record is reported as invalid, as in every store, even if the caller has
// lost the lease.
func (m *Memory) KeepDaemon(ctx context.Context, d Daemon, life time.Duration) error {
	if _, err := EncodeDaemon(d, life); err != nil {
		return err
	}
	return m.write(ctx, func(t *State, now time.Time) error { return t.KeepDaemon(now, d, life) })
}

// DropDaemon implements Daemons.
func (m *Memory) DropDaemon(ctx context.Context, d Daemon) error {
	if err := CheckDaemon(&d); err != nil {
		return err
	}
	return m.write(ctx, func(t *State, _ time.Time) error { return t.DropDaemon(d) })
}

// Daemons implements Daemons.
func (m *Memory) Daemons(_ context.Context, cursor string, limit int) ([]LiveDaemon, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Daemons(m.clock(), cursor, limit)
}
