// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// Config of sessions. Zero fields take the default named beside them.
type Config struct {
	// Tick is the driver's interval between Tick events. 50 ms.
	Tick time.Duration
	// UAMHeartbeat is how long after its last call a UAM with something
	// outstanding is called again, so that its grants lie ready when the
	// AM allocates. 250 ms.
	UAMHeartbeat time.Duration
	// KeepAlive is the same for a UAM with nothing outstanding. 10 s.
	KeepAlive time.Duration
	// HomeWait is how long an allocate waits for home when others have
	// delivered something. 100 ms.
	HomeWait time.Duration
	// HomeWaitMost is how long it waits when there is nothing else to answer. 3 s.
	HomeWaitMost time.Duration
	// RegisterWait bounds the answers to register and finish. 30 s.
	RegisterWait time.Duration
	// AttachWait is how long the answer to register waits for UAMs that
	// outlived the last proxy, so that their containers stand in it. 2 s.
	AttachWait time.Duration
	// SlowAfter is how long a member may fail to answer before its asks move to others. 10 s.
	SlowAfter time.Duration
	// StuckAfter is how long an ask may wait in a member without a grant before others are tried. It is a hundredth
	// of that where the member reported no free resources, or too few for the waiting asks, and the policy splits by
	// free resources. 30 s.
	StuckAfter time.Duration
	// AMExpiry is the time after which home gives up a silent AM, YARN's yarn.am.liveness-monitor.expiry-interval-ms.
	// Its UAMs stay for twice as long. 10 min.
	AMExpiry time.Duration
	// Retry is the first pause after a failed call; it doubles up to RetryMost.
	// 100 ms and 5 s.
	Retry, RetryMost time.Duration
	// UAMRetry is the pause after a UAM could not be started. 30 s.
	UAMRetry time.Duration
	// IdleAfter is how long a UAM may do nothing for its AM before it is given back.
	// 60 s.
	IdleAfter time.Duration
	// Shuffling are the types of applications whose ended containers leave data on their nodes that others read. That
	// data goes with the UAM, so where such a container has run the UAM stays until the application ends. An
	// application of unknown type counts as one. MAPREDUCE, SPARK and TEZ.
	Shuffling []string
	// OneID are the types of applications whose UAM cannot have an id of its own: their containers find each other's
	// data on a node by the id of the application. An unknown type counts as one. MAPREDUCE and TEZ.
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
