// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// clock waits to within some ten microseconds. The runtime's timers round up to a millisecond when the process is
// idle, which would add that latency to every request of a light load. A timer descriptor does not round up.
type clock struct{ timer *os.File }

func newClock() (*clock, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: a timer: %w", os.NewSyscallError("timerfd_create", err))
	}
	return &clock{timer: os.NewFile(uintptr(fd), "timer")}, nil
}

// until waits for a time. If ctx ends, it returns early without an error.
func (c *clock) until(ctx context.Context, at time.Time) error {
	for {
		left := time.Until(at)
		if left <= 0 || ctx.Err() != nil {
			return nil
		}
		// At most a tenth of a second, to notice the end of ctx.
		wait := unix.NsecToTimespec(int64(min(max(left, 20*time.Microsecond), 100*time.Millisecond)))
		conn, err := c.timer.SyscallConn()
		if err == nil {
			var set error
			err = conn.Control(
				func(fd uintptr) { set = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: wait}, nil) },
			)
			if err == nil {
				err = set
			}
		}
		var expired [8]byte
		if err == nil {
			_, err = c.timer.Read(expired[:])
		}
		if err != nil {
			return fmt.Errorf("load: a timer: %w", err)
		}
	}
}

func (c *clock) close() { _ = c.timer.Close() }
