// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// ballastSize is half the size to which a daemon's heap may grow before the collector runs, however little of it is
// alive.
const ballastSize = 256 << 20

// Ballast allocates memory that is never touched: it takes address space but no pages. The garbage collector runs
// whenever the heap has doubled. With 30 MB live and 200 MB of requests a second it would run seven times a second.
// It would then use a third of the daemon's CPU time. During a run, of about 25 ms, it takes every idle core, which
// delays the slowest responses. Ballast does nothing if GOGC or GOMEMLIMIT is set. The returned function releases the
// ballast.
func Ballast() (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	held := make([]byte, ballastSize)
	stop := make(chan struct{})
	go collectStacks(stop)
	return func() {
		close(stop)
		held[0] = 0
	}
}

// smallStacks is the size, in bytes, below which stacks cause no collection.
const smallStacks = 8 << 20

// collectStacks runs the garbage collector when goroutine stacks have grown by a quarter since its last run, and
// returns free memory to the system. Because of the ballast, the runtime would otherwise retain the memory of a burst
// of connections for ever. Only the collector shrinks stacks that were briefly deep, as each new connection's is.
// With the ballast, it may not run for minutes while thousands of clients connect (e2e/faults, strangers).
func collectStacks(stop <-chan struct{}) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	stacks := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	last := max(stacks(), smallStacks)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if now := stacks(); now > last+last/4 {
			debug.FreeOSMemory()
			last = max(stacks(), smallStacks)
		} else if now < last {
			last = max(now, smallStacks)
		}
	}
}
