// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/rm"
)

func TestMain(m *testing.M) {
	if from, to, ok := strings.Cut(os.Getenv(relayVariable), "\n"); ok {
		fmt.Fprintln(os.Stderr, relay(from, to))
		os.Exit(1)
	}
	// Cases of package clients run beside each other; they wait for JVMs and heartbeats more than
	// for the two cores that go test would count.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	rm.Main(m)
}
