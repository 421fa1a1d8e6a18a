// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also is the other process of the benchmarks: they start this binary
// again with a role.
func TestMain(m *testing.M) {
	if role := os.Getenv("HRPC_BENCH_ROLE"); role != "" {
		runBenchRole(role)
		return
	}
	goleak.VerifyTestMain(m)
}
