// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// Lease is the right to lead, of one process at a time. The server's clock alone decides when it ends. A process that
// took it must count its term from before the call, by a clock that does not stop. No clocks of two machines are
// compared.
type Lease struct {
	cfg     Config
	scripts Server
	keys    []string
	process atomic.Pointer[string] // differs between processes, also of one name, and changes with each release
}

// Claim is the answer of a lease.
type Claim struct {
	Won    bool          // this process has it, for the term from now
	Holder string        // name of another process that has it, "" if it is free
	Left   time.Duration // time after which that one loses it, if it does not renew it
}

// OpenLease prepares the lease of a state. Config.Holder is this process's name.
func OpenLease(cfg Config) (*Lease, error) {
	cfg = cfg.withDefaults()
	scripts, err := cfg.Connect()
	if err != nil {
		return nil, err
	}
	l := &Lease{cfg: cfg, scripts: scripts, keys: keysOf(scripts, cfg.Name)}
	l.process.Store(new(rand.Text()))
	return l, nil
}

// Claim takes or renews the lease for a term, if no other process has it.
func (l *Lease) Claim(ctx context.Context, term time.Duration) (Claim, error) {
	return l.ask(ctx, max(term.Microseconds(), 1))
}

// Look returns the holder without a claim.
func (l *Lease) Look(ctx context.Context) (Claim, error) { return l.ask(ctx, 0) }

func (l *Lease) ask(ctx context.Context, term int64) (Claim, error) {
	list, err := l.scripts.Write(ctx, leaseScript, l.keys, l.cfg.Holder, *l.process.Load(), term)
	if err != nil {
		return Claim{}, fmt.Errorf("resource manager's lease in Redis: %w", err)
	}
	if list[0] != "HELD" {
		return Claim{Won: list[0] == "OK"}, nil
	}
	holder, _ := list[1].(string)
	text, _ := list[2].(string)
	left, err := strconv.ParseInt(text, 10, 64)
	return Claim{Holder: holder, Left: time.Duration(left) * time.Microsecond}, err
}

// Release ends the lease, if this process has it. A release that arrives late ends no later lease, because that one has
// another name. Call it while no Claim is under way.
func (l *Lease) Release(ctx context.Context) error {
	process := *l.process.Swap(new(rand.Text()))
	if _, err := l.scripts.Write(ctx, releaseScript, l.keys, process); err != nil {
		return fmt.Errorf("resource manager's lease in Redis: %w", err)
	}
	return nil
}

// Close releases the connections. It does not end the lease.
func (l *Lease) Close() error { return l.scripts.Close() }
