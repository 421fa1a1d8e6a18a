// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// ballastSize lets a daemon's heap grow to twice this before the collector
// runs, however little is alive.
const ballastSize = 256 << 20

// Ballast is memory that is never touched, so that it costs addresses and no
// pages. The collector runs when the heap has doubled: with 30 MB alive and
// 200 MB of requests a second that is seven times a second, a third of a
// daemon's processor; and while it runs, 25 ms at a time, it takes every core
// that is idle for a moment, which is what the slowest answers wait for.
// Whoever sets GOGC or GOMEMLIMIT is left alone. The function it returns lets
// go of it.
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

// smallStacks need no collection of their own, in bytes.
const smallStacks = 8 << 20

// collectStacks runs the collector when the stacks of goroutines have grown by
// a quarter since it last did, and gives the system what is free then: the ballast
// has the runtime keep it, and what a burst of connections needed for a moment would
// be resident for good. Only the collector cuts a stack that was deep for a
// moment, as that of each new connection is; and with the ballast it may not run
// for minutes while thousands connect (e2e/faults, strangers).
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
