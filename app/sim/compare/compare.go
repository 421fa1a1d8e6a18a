// SPDX-License-Identifier: Apache-2.0

// Package compare makes figures for comparing runs of the simulator side by side, per queue and per member. It
// returns values for tables and JSON, and one self-contained HTML page with charts. It is pure.
package compare

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim"
)

// Run has the figures of one run. Shares are from 0 to 1.
type Run struct {
	Name        string   `json:"name"`
	Good        bool     `json:"good"`
	Utilisation float64  `json:"utilisation"` // of all members, while work remained
	WorkLost    Lost     `json:"work_lost"`
	Queues      []Queue  `json:"queues"`
	Members     []Member `json:"members"`
}

// Lost is the preempted resources, and the work lost with them.
type Lost struct {
	Containers     int64   `json:"containers"`
	MemoryGiBHours float64 `json:"memory_gib_hours"`
	CoreHours      float64 `json:"core_hours"`
}

// Times are seconds.
type Times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Queue is one queue over the whole federation.
type Queue struct {
	Queue        creel.QueuePath `json:"queue"`
	Applications int             `json:"applications"`
	Refused      int             `json:"refused"` // of these, rejected by a policy or the queue
	Failed       int             `json:"failed"`  // of these
	Containers   int64           `json:"containers"`
	WaitS        Times           `json:"wait_s"`         // from ask to grant
	StartS       Times           `json:"start_s"`        // from submission to the AM's start
	Used         float64         `json:"used"`           // fraction of the federation, on average
	Entitled     float64         `json:"entitled"`       // the smaller of guarantee and demand, on average
	Short        float64         `json:"short"`          // average shortfall as a fraction of the entitlement
	MembersOfApp float64         `json:"members_of_app"` // members with containers of an application, on average
	WorkLost     Lost            `json:"work_lost"`
	UsedOver     []float64       `json:"used_over"`     // in steps of equal length
	EntitledOver []float64       `json:"entitled_over"` // at the same times
}

// Member is one subcluster.
type Member struct {
	Member       creel.SubclusterID `json:"member"`
	Nodes        int                `json:"nodes"`
	Applications int                `json:"applications"` // with their home there
	Containers   int64              `json:"containers"`
	WaitS        Times              `json:"wait_s"`
	Utilisation  float64            `json:"utilisation"`
	Preempted    int64              `json:"preempted"`
	UsedOver     []float64          `json:"used_over"`
}

// steps limits the values of a line over time.
const steps = 120

// Of computes a run's figures.
func Of(name string, r *sim.Result) Run {
	out := Run{Name: name, Good: r.Good()}
	for i := range r.Queues {
		q := &r.Queues[i]
		used, entitled := make([]float64, len(q.Samples)), make([]float64, len(q.Samples))
		lacked := 0.0
		for j, s := range q.Samples {
			used[j], entitled[j] = s.Used, s.Entitled
			lacked += max(0, s.Entitled-s.Used)
		}
		row := Queue{
			Queue:        q.Queue,
			Applications: q.Applications,
			Refused:      q.Refused,
			Failed:       q.Failed,
			Containers:   q.Containers,
			WaitS:        times(q.Waits),
			StartS:       times(q.Starts),
			Used:         mean(used),
			Entitled:     mean(entitled),
			MembersOfApp: q.Reached,
			WorkLost: Lost{
				Containers:     q.Preempted,
				MemoryGiBHours: float64(q.Lost.MemoryMB) / 1024 / 3600,
				CoreHours:      float64(q.Lost.VCores) / 3600,
			},
			UsedOver:     coarse(used),
			EntitledOver: coarse(entitled),
		}
		if row.Entitled > 0 {
			row.Short = lacked / float64(len(q.Samples)) / row.Entitled
		}
		out.WorkLost.Containers += row.WorkLost.Containers
		out.WorkLost.MemoryGiBHours += row.WorkLost.MemoryGiBHours
		out.WorkLost.CoreHours += row.WorkLost.CoreHours
		out.Utilisation += row.Used
		out.Queues = append(out.Queues, row)
	}
	for i := range r.Subclusters {
		m := &r.Subclusters[i]
		out.Members = append(out.Members, Member{
			Member:       m.ID,
			Nodes:        m.Nodes,
			Applications: m.Applications,
			Containers:   m.Containers,
			WaitS:        times(m.Waits),
			Utilisation:  mean(m.Used),
			Preempted:    m.Preempted,
			UsedOver:     coarse(m.Used),
		})
	}
	return out
}

func times(sorted []time.Duration) Times {
	return Times{P50: sim.Quantile(sorted, 0.5).Seconds(), P99: sim.Quantile(sorted, 0.99).Seconds()}
}

func mean(of []float64) (out float64) {
	for _, v := range of {
		out += v / float64(len(of))
	}
	return out
}

// coarse reduces a long line to averages over steps of equal length.
func coarse(line []float64) []float64 {
	n := (len(line) + steps - 1) / steps
	out := make([]float64, 0, steps)
	for ; n > 0 && len(line) > 0; line = line[min(n, len(line)):] {
		out = append(out, mean(line[:min(n, len(line))]))
	}
	return out
}
