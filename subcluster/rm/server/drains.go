// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// keyDrain is the prefix of hosts' drains in the journal: drains/<host>, a HostDrain.
const keyDrain = "drains/"

const (
	mostDrains     = 100_000
	longestHost    = 255
	longestReason  = 1000
	longestTimeout = 30 * 24 * time.Hour
)

// HostDrain is an order to take a host out, by a call. It has the effect of a line of the exclude file, and is kept in
// the journal. Unlike a host of that file, a host that drains may register again after a restart of this
// ResourceManager: its containers continue.
type HostDrain struct {
	Host   string `json:"host"`
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Since  int64  `json:"since_ms"` // ms since 1970, by this machine's clock
	// AtOnce ends its containers at once. Otherwise it leaves when they have ended, or at the end of Timeout.
	AtOnce  bool          `json:"at_once,omitempty"`
	Timeout time.Duration `json:"timeout_ns,omitempty"` // 0: none
}

// Drains are the hosts that administrators took out by calls.
type Drains struct {
	s *Server
	// change is locked during one change, also while the journal writes.
	change sync.Mutex

	mu     sync.RWMutex
	byHost map[string]HostDrain
}

// order is the machine's order for a node of the host.
func (d HostDrain) order(id creel.NodeID, now time.Time) *rm.Decommission {
	o := &rm.Decommission{ID: id, Graceful: !d.AtOnce, Timeout: -1}
	if d.Timeout > 0 {
		// The clock may have gone back since the order; the time that is left never grows by that.
		left := time.UnixMilli(d.Since).Add(d.Timeout).Sub(now)
		o.Timeout = min(max(left, time.Millisecond), d.Timeout)
	}
	return o
}

// HostState is a host with its drain, if it has one, and its nodes.
type HostState struct {
	Host  string
	Drain *HostDrain
	Nodes []rm.NodeLoad
}

func (k *journalContent) readDrain(value []byte) error {
	var d HostDrain
	if err := json.Unmarshal(value, &d); err != nil {
		return err
	}
	if k.drains == nil {
		k.drains = map[string]HostDrain{}
	}
	k.drains[d.Host] = d
	return nil
}

// Drain takes a host out at an administrator's order. It returns when the order is durable and in force. A second
// order replaces the first.
func (d *Drains) Drain(ctx context.Context, who Caller, order HostDrain) (err error) {
	defer func() { d.s.Audit(who, "drainHost", order.Host, err) }()
	order.By = who.User
	if err := d.may(who, order); err != nil {
		return err
	}
	state, err := d.State(ctx, order.Host)
	if err != nil {
		return err
	}
	if len(state.Nodes) == 0 && state.Drain == nil {
		return noHost(order.Host, "no node of this name has registered since the ResourceManager started",
			"list the nodes with `creel node list`; a host that has never registered goes into the exclude file")
	}
	// From here on the order is carried out as a whole, even if the caller leaves.
	ctx = context.WithoutCancel(ctx)
	d.change.Lock()
	defer d.change.Unlock()
	order.Since = time.Now().UnixMilli()
	if err := d.write(ctx, order.Host, &order); err != nil {
		return err
	}
	d.set(order.Host, &order)
	return d.s.order(ctx, func(m *rm.Machine, now time.Time) error {
		for _, n := range rm.HostLoad(m, is(order.Host)) {
			if n.State == creel.NodeDecommissioned {
				continue
			}
			if err := m.Decommission(now, order.order(n.ID, now)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *Drains) may(who Caller, order HostDrain) error {
	d.s.access.learn(who.User)
	switch {
	case !d.s.access.isAdmin(who.User):
		return denied("User %s doesn't have permission to call 'drainHost'", who.User)
	case order.Host == "" || len(order.Host) > longestHost || strings.ContainsAny(order.Host, " \t\r\n\x00"):
		return codec.Invalid("%q is no name of a host", order.Host[:min(len(order.Host), longestHost)])
	case len(order.Reason) > longestReason:
		return codec.Invalid("the reason is longer than %d bytes", longestReason)
	case order.Timeout < 0 || order.Timeout > longestTimeout:
		return codec.Invalid("a timeout of %v is not between 0 and %v", order.Timeout, longestTimeout)
	case d.count() >= mostDrains:
		return codec.Invalid("%d hosts are drained by calls already; name further ones in the exclude file", mostDrains)
	}
	return nil
}

// Undrain takes a host in again. Its draining nodes serve again, and its decommissioned ones may register. It
// fails for a host of the exclude file, and changes nothing then.
func (d *Drains) Undrain(ctx context.Context, who Caller, host string) (err error) {
	defer func() { d.s.Audit(who, "undrainHost", host, err) }()
	if d.s.access.learn(who.User); !d.s.access.isAdmin(who.User) {
		return denied("User %s doesn't have permission to call 'undrainHost'", who.User)
	}
	ctx = context.WithoutCancel(ctx)
	d.change.Lock()
	defer d.change.Unlock()
	if !d.s.nodes.listed(host) {
		return &creel.Error{
			Kind: creel.ErrConflict,
			What: "host " + host + " stays out",
			Why:  "the files of hosts exclude it",
			Try:  "change the file with `creel node recommission " + host + " --conf DIR`",
		}
	}
	if _, drains := d.of(host); !drains {
		return noHost(host, "no call has drained it", "list the drained hosts with `creel node drains`")
	}
	if err := d.write(ctx, host, nil); err != nil {
		return err
	}
	d.set(host, nil)
	return d.s.order(ctx, func(m *rm.Machine, now time.Time) error {
		for _, n := range rm.HostLoad(m, is(host)) {
			if n.State == creel.NodeDecommissioning || n.State == creel.NodeDecommissioned {
				if err := m.Recommission(now, n.ID); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func noHost(host, why, try string) error {
	return &creel.Error{Kind: creel.ErrNodeNotFound, What: "host " + host + " is not found", Why: why, Try: try}
}

// is selects one host.
func is(host string) func(string) bool { return func(other string) bool { return other == host } }

// write writes a host's drain, or deletes it for nil. It returns when that is durable.
func (d *Drains) write(ctx context.Context, host string, drain *HostDrain) error {
	if d.s.durability.log == nil {
		return nil // without a journal nothing outlives the process
	}
	var value []byte
	if drain != nil {
		var err error
		if value, err = json.Marshal(drain); err != nil {
			return fmt.Errorf("resource manager: saving the drain of %s: %w", host, err)
		}
	}
	_, err := Do(ctx, d.s, Caller{}, Op[struct{}]{
		durable: true, grows: true,
		Run: func(*rm.Machine, time.Time) func() (struct{}, error) {
			if drain == nil {
				d.s.durability.tx.Delete(keyDrain + host)
			} else {
				d.s.durability.tx.Put(keyDrain+host, value)
			}
			return Done(struct{}{})
		},
	})
	return err
}

// State returns a host's drain and its nodes with their load now: the effect that a drain would have, and its
// progress later.
func (d *Drains) State(ctx context.Context, host string) (h HostState, err error) {
	h.Host = host
	if drain, ok := d.of(host); ok {
		h.Drain = &drain
	}
	err = d.s.Query(ctx, func(m *rm.Machine, _ time.Time) { h.Nodes = rm.HostLoad(m, is(host)) })
	return h, err
}

// List returns the hosts that calls drain, by name.
func (d *Drains) List(ctx context.Context) (list []HostState, err error) {
	drains := d.all()
	var nodes []rm.NodeLoad
	err = d.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
		nodes = rm.HostLoad(m, func(host string) bool { _, drained := drains[host]; return drained })
	})
	of := map[string][]rm.NodeLoad{}
	for i := range nodes {
		of[nodes[i].ID.Host] = append(of[nodes[i].ID.Host], nodes[i])
	}
	for _, host := range slices.Sorted(maps.Keys(drains)) {
		list = append(list, HostState{Host: host, Drain: new(drains[host]), Nodes: of[host]})
	}
	return list, err
}

// of returns the drain of a host.
func (d *Drains) of(host string) (HostDrain, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	drain, ok := d.byHost[host]
	return drain, ok
}

func (d *Drains) count() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.byHost)
}

func (d *Drains) all() map[string]HostDrain {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return maps.Clone(d.byHost)
}

// set sets a host's drain; nil removes it.
func (d *Drains) set(host string, drain *HostDrain) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if drain == nil {
		delete(d.byHost, host)
		return
	}
	if d.byHost == nil {
		d.byHost = map[string]HostDrain{}
	}
	d.byHost[host] = *drain
}
