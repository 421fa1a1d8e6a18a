// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package load

import (
	"context"
	"time"
)

// clock waits with the runtime's timers, to within a millisecond.
type clock struct{}

func newClock() (*clock, error) { return &clock{}, nil }

// until waits for a time. If ctx ends, it returns early without an error.
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
