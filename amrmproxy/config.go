// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// Config configures sessions. Zero fields take the default given with them.
type Config struct {
	// Tick is the driver's interval between Tick events. 50 ms.
	Tick time.Duration
	// UAMHeartbeat is the time between calls of a UAM with outstanding asks, so that its grants are ready when the AM
	// allocates. 250 ms.
	UAMHeartbeat time.Duration
	// KeepAlive is the same for a UAM without outstanding asks. 10 s.
	KeepAlive time.Duration
	// HomeWait is the time that an allocate waits for home if other members have delivered something. 100 ms.
	HomeWait time.Duration
	// HomeWaitMost is the time that it waits if they have delivered nothing. 3 s.
	HomeWaitMost time.Duration
	// RegisterWait bounds the answers to register and finish. 30 s.
	RegisterWait time.Duration
	// AttachWait is the time that the answer to register waits for UAMs that outlived the last proxy, so that it
	// includes their containers. 2 s.
	AttachWait time.Duration
	// SlowAfter is the time after which the asks of a member that does not answer move to others. 10 s.
	SlowAfter time.Duration
	// StuckAfter is the time that an ask may wait in a member without a grant before other members are tried. If the
	// member reported too few free resources for the waiting asks, and the policy splits by free resources, a
	// hundredth of this time applies. 30 s.
	StuckAfter time.Duration
	// AMExpiry is the time after which home gives up a silent AM: yarn.am.liveness-monitor.expiry-interval-ms. The
	// AM's UAMs stay for twice this time. 10 min.
	AMExpiry time.Duration
	// Retry is the first pause after a failed call; it doubles up to RetryMost.
	// 100 ms and 5 s.
	Retry, RetryMost time.Duration
	// UAMRetry is the pause after a UAM failed to start. 30 s.
	UAMRetry time.Duration
	// LongQueue is the length from which on a node's queue is long: where all queues of a member's least loaded nodes
	// are, opportunistic asks go to other members. 0: lengths do not matter.
	LongQueue int32
	// IdleAfter is the time after which an idle UAM is released. 60 s.
	IdleAfter time.Duration
	// Shuffling are the types of applications whose ended containers leave data on their nodes that other containers
	// read. The node deletes the data when the UAM ends. So a UAM with such a container stays until the application
	// ends. An unknown type counts as Shuffling. MAPREDUCE, SPARK and TEZ.
	Shuffling []string
	// OneID are the types of applications whose UAMs must use the application's id: their containers find each
	// other's data on a node by that id. An unknown type counts as OneID. MAPREDUCE and TEZ.
	OneID []string
}

// Validate fills in defaults and rejects values that cannot work.
func (c *Config) Validate() error {
	for _, d := range []struct {
		name string
		at   *time.Duration
		def  time.Duration
	}{
		{"Tick", &c.Tick, 50 * time.Millisecond},
		{"UAMHeartbeat", &c.UAMHeartbeat, 250 * time.Millisecond},
		{"KeepAlive", &c.KeepAlive, 10 * time.Second},
		{"HomeWait", &c.HomeWait, 100 * time.Millisecond},
		{"HomeWaitMost", &c.HomeWaitMost, 3 * time.Second},
		{"RegisterWait", &c.RegisterWait, 30 * time.Second},
		{"AttachWait", &c.AttachWait, 2 * time.Second},
		{"SlowAfter", &c.SlowAfter, 10 * time.Second},
		{"StuckAfter", &c.StuckAfter, 30 * time.Second},
		{"AMExpiry", &c.AMExpiry, 10 * time.Minute},
		{"Retry", &c.Retry, 100 * time.Millisecond},
		{"RetryMost", &c.RetryMost, 5 * time.Second},
		{"UAMRetry", &c.UAMRetry, 30 * time.Second},
		{"IdleAfter", &c.IdleAfter, time.Minute},
	} {
		if *d.at == 0 {
			*d.at = d.def
		}
		if *d.at < 0 {
			return &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "invalid proxy configuration",
				Why:  fmt.Sprintf("%s is %v", d.name, *d.at),
				Try:  "use a positive time",
			}
		}
	}
	if c.Shuffling == nil {
		c.Shuffling = []string{"MAPREDUCE", "SPARK", "TEZ"}
	}
	if c.OneID == nil {
		c.OneID = []string{"MAPREDUCE", "TEZ"}
	}
	if c.HomeWaitMost < c.HomeWait || c.RetryMost < c.Retry {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "invalid proxy configuration",
			Why:  "HomeWaitMost is below HomeWait, or RetryMost below Retry",
		}
	}
	return nil
}
