// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/creelrm/creel"
)

// Summary is the content of --summary; `creel sim` writes the same keys.
type Summary struct {
	Applications struct {
		Submitted int `json:"submitted"`
		Finished  int `json:"finished"`
		Failed    int `json:"failed"`
		Lost      int `json:"lost"`
		Doubled   int `json:"doubled"`
	} `json:"applications"`
	Containers struct {
		Granted   int64   `json:"granted"`
		PerSecond float64 `json:"per_second"`
	} `json:"containers"`
	Opportunistic struct { // containers, of the ResourceManagers that run at the end
		Granted int64 `json:"granted"`
		Killed  int64 `json:"killed"` // by nodes
	} `json:"opportunistic"`
	GrantMS  Quantiles `json:"grant_ms"`
	SubmitMS struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"submit_ms"`
	Room struct { // of all nodes together
		InUse float64 `json:"in_use"` // fraction, average over the looks
		Full  int     `json:"full"`   // looks with hardly any free resources
		Looks int     `json:"looks"`
	} `json:"room"`
	EntitlementError struct { // of resources due for at least a second
		Mean    float64 `json:"mean"`
		P99     float64 `json:"p99"`
		Samples int     `json:"samples"` // number of queues and looks
	} `json:"entitlement_error"`
	Maximum struct { // of queues with a federation-wide maximum
		Checked int64   `json:"checked"` // number of checks
		Fullest float64 `json:"fullest"` // highest use of any maximum, as a fraction
	} `json:"maximum"`
	Invariants struct {
		Checked int64 `json:"checked"`
		Broken  int64 `json:"broken"`
	} `json:"invariants"`
	Subclusters []SubclusterSummary `json:"subclusters"`
	WallS       float64             `json:"wall_s"`
	Trace       string              `json:"trace"`
	Seed        uint64              `json:"seed"`
	Speed       float64             `json:"speed"`

	Steady  *Summary `json:"steady,omitempty"`             // the steady part after the day
	Without *Summary `json:"without_rebalancer,omitempty"` // the same day without a rebalancer
}

// good reports whether each application reached its end exactly once and no invariant was broken.
func (s *Summary) good() bool {
	a := &s.Applications
	return a.Submitted > 0 && a.Finished+a.Failed == a.Submitted && a.Lost == 0 && a.Doubled == 0 &&
		s.Invariants.Broken == 0 && (s.Steady == nil || s.Steady.good())
}

// Quantiles of a time, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// SubclusterSummary is one line of the table.
type SubclusterSummary struct {
	ID           creel.SubclusterID `json:"id"`
	Applications int                `json:"applications"`
	Containers   int64              `json:"containers"`
	Nodes        int                `json:"nodes"`
}

// Print writes the table and the verdict, and reports whether it is good.
func (s *Summary) Print(w io.Writer) bool {
	fmt.Fprintf(w, "\n%-12s %13s %13s %7s\n", "subcluster", "applications", "containers", "nodes")
	for _, sub := range s.Subclusters {
		fmt.Fprintf(w, "%-12s %13d %13d %7d\n", sub.ID, sub.Applications, sub.Containers, sub.Nodes)
	}
	a := &s.Applications
	fmt.Fprintf(
		w,
		"\napplications  %d submitted, %d finished, %d failed, %d lost, %d doubled\n",
		a.Submitted,
		a.Finished,
		a.Failed,
		a.Lost,
		a.Doubled,
	)
	fmt.Fprintf(w, "containers    %d granted, %.0f a second\n", s.Containers.Granted, s.Containers.PerSecond)
	if o := &s.Opportunistic; o.Granted > 0 {
		fmt.Fprintf(w, "              %d opportunistic ones granted, %d killed at their nodes\n", o.Granted, o.Killed)
	}
	if room := &s.Room; room.Looks > 0 {
		fmt.Fprintf(w, "utilization   %.0f%% on average, saturated in %d of %d samples\n",
			100*room.InUse, room.Full, room.Looks)
	}
	fmt.Fprintf(w, "ask to grant  p50 %.1f ms, p99 %.1f ms, max %.0f ms, including waits for free capacity\n",
		s.GrantMS.P50, s.GrantMS.P99, s.GrantMS.Max)
	fmt.Fprintf(w, "submission    p50 %.1f ms, p99 %.1f ms\n", s.SubmitMS.P50, s.SubmitMS.P99)
	fmt.Fprintf(w, "entitlement   queues received %.1f%% less than their guarantee on average, %.1f%% at p99\n",
		100*s.EntitlementError.Mean, 100*s.EntitlementError.P99)
	if m := &s.Maximum; m.Checked > 0 {
		fmt.Fprintf(
			w,
			"maximum       a queue used at most %.1f%% of its federation-wide maximum, in %d samples\n",
			100*m.Fullest,
			m.Checked,
		)
	}
	fmt.Fprintf(w, "invariants    %d checked, %d broken\n", s.Invariants.Checked, s.Invariants.Broken)
	fmt.Fprintf(w, "wall          %.1f s\n", s.WallS)
	if p := s.Steady; p != nil {
		e := &p.EntitlementError
		fmt.Fprintf(w, "steady part   %d applications, %d containers, utilization %.0f%%; %d lost, %d doubled, %d of %d "+
			"invariants broken\n", p.Applications.Submitted, p.Containers.Granted, 100*p.Room.InUse,
			p.Applications.Lost, p.Applications.Doubled, p.Invariants.Broken, p.Invariants.Checked)
		fmt.Fprintf(w, "              queues received %.1f%% less than their guarantee on average, %.1f%% at p99 (%d samples)\n",
			100*e.Mean, 100*e.P99, e.Samples)
	}
	fmt.Fprintln(w)
	if o := s.Without; o != nil {
		s.beside(w, o)
	}
	good := s.good()
	if good {
		fmt.Fprintln(w, "verdict: good. Each application reached its end exactly once; no invariant was broken.")
	} else {
		fmt.Fprintln(w, "verdict: BAD.")
	}
	return good
}

// beside shows the benefit of the rebalancer: the same day without and with it.
func (s *Summary) beside(w io.Writer, o *Summary) {
	fmt.Fprintf(w, "%-42s %12s %12s\n", "the same day", "without it", "with it")
	row := func(what, unit string, without, with float64) {
		fmt.Fprintf(w, "%-42s %9.1f %-2s %9.1f %s\n", what, without, unit, with, unit)
	}
	row("guarantee lacked, on average", "%", 100*o.EntitlementError.Mean, 100*s.EntitlementError.Mean)
	row("guarantee lacked, p99", "%", 100*o.EntitlementError.P99, 100*s.EntitlementError.P99)
	row("ask to grant, p50", "ms", o.GrantMS.P50, s.GrantMS.P50)
	row("ask to grant, p99", "ms", o.GrantMS.P99, s.GrantMS.P99)
	row("utilization, on average", "%", 100*o.Room.InUse, 100*s.Room.InUse)
	if o, s := o.Steady, s.Steady; o != nil && s != nil {
		row("steady part: guarantee lacked, on average", "%", 100*o.EntitlementError.Mean, 100*s.EntitlementError.Mean)
		row("steady part: guarantee lacked, p99", "%", 100*o.EntitlementError.P99, 100*s.EntitlementError.P99)
		row("steady part: ask to grant, p50", "ms", o.GrantMS.P50, s.GrantMS.P50)
		row("steady part: ask to grant, p99", "ms", o.GrantMS.P99, s.GrantMS.P99)
		row("steady part: room in use", "%", 100*o.Room.InUse, 100*s.Room.InUse)
		fmt.Fprintf(w, "%-42s %9d %12d\n", "steady part: queues x looks",
			o.EntitlementError.Samples, s.EntitlementError.Samples)
	}
	fmt.Fprintln(w)
}

// WriteFile writes the summary as JSON.
func WriteFile(path string, summary any) error {
	b, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}
