// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"io"
	"net"
	"os"
	"testing"

	"github.com/creelrm/creel/e2e/process"
)

// relayVariable, set in the environment of this test's program, makes the program a relay. Its value is two addresses,
// one a line: the program relays from the first to the second.
const relayVariable = "CREEL_E2E_RELAY"

// startRelay starts a process that copies bytes between its connections and an address. It returns its own address. It
// is the control of BenchmarkProxy: it has the proxy's two hops between processes, and parses nothing.
func startRelay(t testing.TB, to string) (address string, p *process.Process) {
	t.Helper()
	address = process.FreeAddress(t, "127.0.0.1")
	p = process.Start(t, process.Command{
		Name: "relay", Dir: tempDir(t, "relay"), Args: []string{os.Args[0]},
		Env: []string{relayVariable + "=" + address + "\n" + to},
	})
	p.WaitPort(t, address)
	return address, p
}

// relay copies until the process ends, with two goroutines for each connection.
func relay(address, to string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		in, err := l.Accept()
		if err != nil {
			return err
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = in.Close()
			continue
		}
		go relayOneWay(in, out)
		go relayOneWay(out, in)
	}
}

// relayOneWay reads and writes as programs do. (*net.TCPConn).ReadFrom would make the kernel move the bytes (splice),
// which a program that parses them cannot use.
func relayOneWay(to, from net.Conn) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 64<<10))
	_ = to.Close()
	_ = from.Close()
}
