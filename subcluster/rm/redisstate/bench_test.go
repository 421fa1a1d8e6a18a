// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// The journal has the same benchmark.
func BenchmarkCommit(b *testing.B) {
	value := bytes.Repeat([]byte("v"), 200)
	for name, server := range map[string]*redistest.Server{
		"everysec": redistest.Start(b, "--appendonly", "yes"),
		"always":   redistest.Start(b, "--appendonly", "yes", "--appendfsync", "always"),
	} {
		for _, inFlight := range []int{1, 256, 4096} {
			b.Run(fmt.Sprint(name, "/inflight=", inFlight), func(b *testing.B) {
				h := deployment(server.URL(), 0, time.Second).Start(b)
				slots := make(chan struct{}, inFlight)
				var tx state.Tx
				b.ResetTimer()
				for i := range b.N {
					slots <- struct{}{}
					tx.Reset()
					tx.Put(fmt.Sprintf("app/%010d", i), value)
					h.Commit(&tx, func(error) { <-slots })
				}
				if err := h.End(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			})
		}
	}
}
