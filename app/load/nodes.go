// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"time"

	"github.com/creelrm/creel"
)

// NodesOptions is a load of heartbeats.
type NodesOptions struct {
	Options
	Tracker string // host:port of ResourceTracker
	Nodes   int
	First   int            // number of the first node, so that parallel loads differ
	Period  time.Duration  // between a node's heartbeats; 0: as fast as they are answered
	Total   creel.Resource // of each node; 0: 8 GB and 8 cores
}

// NodesResult is the report about nodes in addition to the heartbeats' latency.
type NodesResult struct {
	Nodes      int     `json:"nodes"`
	PeriodMS   float64 `json:"period_ms"`
	RegisterS  float64 `json:"register_s"` // until all were registered
	Registered int64   `json:"registered"`
	Resyncs    int64   `json:"resyncs"`
	// Held reports that no node's heartbeat failed or was answered a period late.
	Held bool `json:"held"`
}

// Nodes registers nodes and sends a heartbeat of each in every period, evenly spread.
func Nodes(ctx context.Context, o NodesOptions) (*Result, error) {
	if o.Period < 0 || o.Period > time.Hour {
		return nil, badOption("a period of %v: give 0 to 1h", o.Period)
	}
	if o.Period > 0 {
		o.Plan.Rate = float64(o.Nodes) / o.Period.Seconds()
	}
	o.Plan.InFlight = min(o.Plan.InFlight, max(o.Nodes, 1))
	if err := o.check(o.Tracker); err != nil {
		return nil, err
	}
	clients, end := o.clients(o.Plan.Connections)
	defer end()
	f, err := newFleet(clients, o.Tracker, o.Nodes, o.First, nodeSize(o.Total))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := f.register(ctx); err != nil {
		return nil, err
	}
	took := time.Since(began)
	m := newMeter(o.PIDs)
	drive := driveOpenPiped
	if o.Plan.Rate == 0 {
		drive = drivePiped
	}
	err = drive(ctx, o.Plan, m, clients, f.piped(tracker(o.Tracker)))
	r := m.result("nodes", o.Tracker, o.Plan)
	r.Nodes = &NodesResult{
		Nodes:      o.Nodes,
		PeriodMS:   float64(o.Period) / float64(time.Millisecond),
		RegisterS:  round(took.Seconds()),
		Registered: f.registered.Load(),
		Resyncs:    f.resyncs.Load(),
	}
	r.Nodes.Held = r.Failed == 0 && r.Unsent == 0 && (o.Period == 0 || r.Latency.Max <= r.Nodes.PeriodMS)
	return r, err
}

func nodeSize(r creel.Resource) creel.Resource {
	if r.IsZero() {
		return creel.NewResource(8192, 8)
	}
	return creel.NewResource(r.MemoryMB, cmp.Or(r.VCores, 1))
}
