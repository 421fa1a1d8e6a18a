// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// Ports are below the kernel's ephemeral range. So no outgoing connection takes a port before the child binds it.
const (
	lowestPort  = 20000
	highestPort = 32000
)

var ports struct {
	sync.Mutex
	held  []*os.File // a locked file for each port, see reserved
	tried int        // number of ports tried
}

// FreePort returns a TCP port without a listener at the host (a loopback address). No living test binary has reserved
// it before. The reservation matters because a JVM binds the port only seconds later.
func FreePort(t testing.TB, host string) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		// Each process starts at another port. So a client that outlives its test rarely connects to another test's
		// server.
		port := lowestPort + (os.Getpid()*97+ports.tried)%(highestPort-lowestPort)
		ports.tried++
		// A daemon on the wildcard address would also use the port.
		if free("", port) && free(host, port) && reserved(t, port) {
			return port
		}
	}
	t.Fatalf("no free port between %d and %d on %s", lowestPort, highestPort, host)
	return 0
}

// reserved reserves a port for this process's lifetime, and reports whether no test process had reserved it.
func reserved(t testing.TB, port int) bool {
	t.Helper()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("creel-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		f.Close()
		return false
	}
	ports.held = append(ports.held, f)
	return true
}

func free(host string, port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// FreeAddress returns "host:port" with a FreePort of the host.
func FreeAddress(t testing.TB, host string) string {
	t.Helper()
	return fmt.Sprintf("%s:%d", host, FreePort(t, host))
}
