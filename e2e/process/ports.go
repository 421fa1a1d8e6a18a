// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports below the kernel's ephemeral range, so that an outgoing connection of
// some other program does not take one between here and the child's bind.
const (
	lowestPort  = 20000
	highestPort = 32000
)

var ports struct {
	sync.Mutex
	given map[int]bool
}

// FreePort returns a TCP port that nobody listens on at the host (a loopback
// address) and that this binary has not given out before.
func FreePort(t testing.TB, host string) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.given == nil {
		ports.given = make(map[int]bool)
	}
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if ports.given[port] {
			continue
		}
		// A daemon on the wildcard address would take the port as well.
		if !free("", port) || !free(host, port) {
			continue
		}
		ports.given[port] = true
		return port
	}
	t.Fatalf("no free port between %d and %d on %s", lowestPort, highestPort, host)
	return 0
}

func free(host string, port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// FreeAddress is "host:port" with a FreePort of the host.
func FreeAddress(t testing.TB, host string) string {
	t.Helper()
	return fmt.Sprintf("%s:%d", host, FreePort(t, host))
}
