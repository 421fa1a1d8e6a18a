// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package load

import (
	"context"
	"time"
)

// clock waits by the runtime's timers, to within a millisecond.
type clock struct{}

func newClock() (*clock, error) { return &clock{}, nil }

// until waits for a time. It wakes early and without an error when ctx ends.
func (*clock) until(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return nil
}

func (*clock) close() {}
