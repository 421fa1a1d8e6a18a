// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"time"

	"github.com/creelrm/creel"
)

// TaskKind distinguishes maps and reduces.
type TaskKind uint8

// The kinds of a MapReduce job's tasks.
const (
	Map TaskKind = iota
	Reduce
)

func (k TaskKind) String() string {
	if k == Reduce {
		return "reduce"
	}
	return "map"
}

// Job is one application to run, with everything that a simulated AM needs.
type Job struct {
	Index   int // position in the day, the key of all its draws
	Name    string
	Submit  time.Duration // since the start of the replay, already compressed
	Queue   creel.QueuePath
	User    string
	Maps    int
	Reduces int
	Seed    uint64
	Speed   float64       // divisor of recorded durations
	Floor   time.Duration // the least duration of a task
	Vary    time.Duration // if not 0, a task runs for Floor and up to Vary more, regardless of the recorded durations
}

// Tasks returns the number of containers that the job needs besides its AM's.
func (j Job) Tasks() int { return j.Maps + j.Reduces }

// Duration returns the duration of one task, compressed.
func (j Job) Duration(d *Durations, kind TaskKind, index int) time.Duration {
	if j.Vary > 0 {
		return j.Floor + time.Duration(mix(j.Seed, uint64(j.Index), uint64(kind), uint64(index))%uint64(j.Vary))
	}
	v := time.Duration(float64(d.Draw(j.Seed, j.Index, kind, index)) / j.Speed)
	return max(v, j.Floor)
}

// Share is one queue of the day, with the weight by which jobs are assigned to it.
type Share struct {
	Queue  creel.QueuePath
	Weight float64
}

// Plan describes the conversion of a recorded day to jobs.
type Plan struct {
	From, To  time.Duration // the part of the day to use; To 0 is the end
	Speed     float64       // compression of time: 60 makes an hour a minute
	Machines  int           // size of the simulated cluster; the recorded one had 600
	BlockSize int64         // bytes a map reads; SWIM's own tool: 64 MiB
	MaxTasks  int           // bound on the maps, and on the reduces, of one job; 0 is none
	Queues    []Share       // jobs are distributed over these by weight
	Users     int           // users, Zipf-distributed within each queue
	Seed      uint64
	Floor     time.Duration // the least duration of a task, compressed
}

// recordedMachines is the size of the cluster that recorded the Facebook days.
const recordedMachines = 600

// Validate returns an error for an invalid plan.
func (p Plan) Validate() error {
	switch {
	case p.Speed <= 0 || math.IsInf(p.Speed, 0) || math.IsNaN(p.Speed):
		return fmt.Errorf("speed must be a positive number, not %v", p.Speed)
	case p.To != 0 && p.To <= p.From:
		return fmt.Errorf("the part of the day ends (%v) before it starts (%v)", p.To, p.From)
	case p.Machines <= 0:
		return fmt.Errorf("machines must be at least 1, not %d", p.Machines)
	case p.BlockSize <= 0:
		return fmt.Errorf("block size must be at least 1 byte, not %d", p.BlockSize)
	case len(p.Queues) == 0:
		return fmt.Errorf("the plan has no queue to put jobs into")
	}
	total := 0.0
	for _, q := range p.Queues {
		if q.Weight < 0 || math.IsNaN(q.Weight) {
			return fmt.Errorf("queue %s has weight %v; it must be at least 0", q.Queue, q.Weight)
		}
		total += q.Weight
	}
	if total <= 0 {
		return fmt.Errorf("all queues of the plan have weight 0")
	}
	return nil
}

// Jobs makes the jobs of the planned part of the day, in order of submission. Task counts follow the rule of SWIM's own
// replay tool. Bytes are scaled by machines/600, and each block becomes one map (at least one). Unless the job is
// map-only, (shuffle + output) becomes one reduce for each block. If that exceeds the number of machines, a fifth of
// the machines is used.
func (p Plan) Jobs(day []TraceRecord) ([]Job, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var out []Job
	for i, r := range day {
		if r.Submit < p.From || p.To != 0 && r.Submit >= p.To {
			continue
		}
		j := Job{Index: i, Name: r.Name, Seed: p.Seed, Speed: p.Speed, Floor: p.Floor}
		j.Submit = time.Duration(float64(r.Submit-p.From) / p.Speed)
		j.Maps = max(1, int(min(p.blocks(r.Input), math.MaxInt32)))
		if r.Shuffle > 0 {
			n := max(1, p.blocks(r.Shuffle+r.Output))
			if n > int64(p.Machines) {
				n = max(1, int64(p.Machines)/5)
			}
			j.Reduces = int(n)
		}
		if p.MaxTasks > 0 {
			j.Maps, j.Reduces = min(j.Maps, p.MaxTasks), min(j.Reduces, p.MaxTasks)
		}
		j.Queue = p.deal(i)
		j.User = p.user(i)
		out = append(out, j)
	}
	return out, nil
}

// blocks returns the number of blocks that n recorded bytes fill on this cluster.
func (p Plan) blocks(n int64) int64 {
	scaled := float64(n) * float64(p.Machines) / recordedMachines
	return int64(math.Ceil(scaled / float64(p.BlockSize)))
}

// unit draws a number in [0, 1) for one job and purpose.
func (p Plan) unit(job int, purpose uint64) float64 {
	return float64(mix(p.Seed, uint64(job), purpose)>>11) / (1 << 53)
}

func (p Plan) deal(job int) creel.QueuePath {
	total := 0.0
	for _, q := range p.Queues {
		total += q.Weight
	}
	x := p.unit(job, 'q') * total
	for _, q := range p.Queues {
		if x -= q.Weight; x < 0 {
			return q.Queue
		}
	}
	return p.Queues[len(p.Queues)-1].Queue
}

// user draws by Zipf's law with exponent 1: user k submits in proportion to 1/k.
func (p Plan) user(job int) string {
	if p.Users <= 1 {
		return "user1"
	}
	norm := 0.0
	for k := 1; k <= p.Users; k++ {
		norm += 1 / float64(k)
	}
	x := p.unit(job, 'u') * norm
	for k := 1; k < p.Users; k++ {
		if x -= 1 / float64(k); x < 0 {
			return fmt.Sprintf("user%d", k)
		}
	}
	return fmt.Sprintf("user%d", p.Users)
}
