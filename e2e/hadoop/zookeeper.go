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

// Quorum is three ZooKeeper servers with the same nodes.
type Quorum struct {
	Servers   []*Daemon
	Addresses []string
}

// StartQuorum starts three ZooKeeper servers. They elect their leader in the background.
func StartQuorum(t testing.TB) *Quorum {
	t.Helper()
	const size = 3
	q, peers := &Quorum{}, ""
	for i := range size {
		q.Addresses = append(q.Addresses, process.FreeAddress(t, "127.0.0.1"))
		_, election, _ := strings.Cut(process.FreeAddress(t, "127.0.0.1"), ":")
		peers += fmt.Sprintf("server.%d=%s:%s\n", i+1, process.FreeAddress(t, "127.0.0.1"), election)
	}
	for i, address := range q.Addresses {
		name := fmt.Sprint("zookeeper-", i+1)
		dir := tempDir(t, name)
		_, port, _ := strings.Cut(address, ":")
		data := filepath.Join(dir, "data")
		text := fmt.Sprintf("tickTime=1000\ninitLimit=20\nsyncLimit=4\ndataDir=%s\nclientPortAddress=127.0.0.1\n"+
			"clientPort=%s\nadmin.enableServer=false\nmaxClientCnxns=0\n%s", data, port, peers)
		file := filepath.Join(dir, "zoo.cfg")
		err := os.Mkdir(data, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, i+1), 0o644)
		}
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		q.Servers = append(q.Servers, launchZooKeeper(t, name, dir, file, "quorum.QuorumPeerMain", nil, address))
	}
	return q
}

// Leader waits until one of the servers leads, and returns its index.
func (q *Quorum) Leader(t testing.TB) int {
	t.Helper()
	for began := time.Now(); time.Since(began) < process.Guard; time.Sleep(20 * time.Millisecond) {
		for i, address := range q.Addresses {
			if !q.Servers[i].Ended() && strings.Contains(askZooKeeper(address, "srvr"), "Mode: leader") {
				return i
			}
		}
	}
	t.Fatal("no ZooKeeper server leads")
	return 0
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
