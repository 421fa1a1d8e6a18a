// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/process"
)

// ZooKeeper are the options of a ZooKeeper server.
type ZooKeeper struct {
	TLS   bool     // at the returned address
	Lines []string // of its configuration
	Flags []string // of its JVM
}

// StartZooKeeper starts a ZooKeeper server and returns its address.
func StartZooKeeper(t testing.TB) (*Daemon, string) {
	t.Helper()
	return StartZooKeeperWith(t, ZooKeeper{})
}

// StartZooKeeperWith is StartZooKeeper with options.
func StartZooKeeperWith(t testing.TB, o ZooKeeper) (*Daemon, string) {
	t.Helper()
	dir := tempDir(t, "zookeeper")
	address := process.FreeAddress(t, "127.0.0.1")
	_, port, _ := strings.Cut(address, ":")
	lines := []string{
		"tickTime=2000", "dataDir=" + filepath.Join(dir, "data"), "admin.enableServer=false", "maxClientCnxns=0",
		"clientPortAddress=127.0.0.1", "clientPort=" + port,
	}
	plain := address
	if o.TLS {
		address = process.FreeAddress(t, "127.0.0.1")
		_, port, _ = strings.Cut(address, ":")
		lines = append(lines, "secureClientPortAddress=127.0.0.1", "secureClientPort="+port,
			"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory")
	}
	file, text := filepath.Join(dir, "zoo.cfg"), strings.Join(append(lines, o.Lines...), "\n")+"\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d := launchZooKeeper(t, "zookeeper", dir, file, "ZooKeeperServerMain", o.Flags, address)
	// It accepts connections before it serves them.
	d.Await(t, "the service", func() bool { return strings.Contains(askZooKeeper(plain, "srvr"), "Mode: ") })
	return d, address
}

// launchZooKeeper starts a server with a file of its configuration.
func launchZooKeeper(t testing.TB, name, dir, file, class string, flags []string, address string) *Daemon {
	t.Helper()
	d := &Daemon{ConfDir: filepath.Join(dir, "conf"), ready: "binding to port"}
	Conf{}.Write(t, d.ConfDir)
	d.command = process.Command{Name: name, Dir: dir,
		Args: jvm(t, ClassPath(t, V342, d.ConfDir), append([]string{"-Xmx128m"}, flags...),
			"org.apache.zookeeper.server."+class, file)}
	d.start(t)
	d.WaitPort(t, address)
	return d
}

// askZooKeeper returns a ZooKeeper's answer to one of its commands of four letters, "" if there is none.
func askZooKeeper(address, command string) string {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte(command)); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(c) // the server ends the connection
	return string(answer)
}
