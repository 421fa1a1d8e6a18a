// SPDX-License-Identifier: Apache-2.0

// Package redistest starts real redis-server and redis-sentinel processes on loopback for tests: one server, a
// cluster, or a primary with a replica under Sentinels. It can kill, pause and restart them. A missing binary fails
// the test with a hint; it never skips the test. Proxy is a TCP path with faults.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/creelrm/creel/internal/programs"
)

// Server is one redis-server (or sentinel) process.
type Server struct {
	Addr string // host:port on loopback
	Dir  string // its data

	tb   testing.TB
	bin  string
	args []string
	cmd  *exec.Cmd
	done chan struct{} // closed after cmd.Wait returned
}

// Start runs a redis-server with extra arguments ("--appendonly", "yes") until the test ends. By default it does not
// persist.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, "redis-server", func(dir string, port int) []string {
		return append(
			[]string{
				"--port",
				strconv.Itoa(port),
				"--bind",
				"127.0.0.1",
				"--dir",
				dir,
				"--save",
				"",
				"--appendonly",
				"no",
				"--loglevel",
				"notice",
				"--logfile",
				filepath.Join(dir, "redis.log"),
				"--repl-diskless-sync-delay",
				"0",
			},
			args...)
	})
}

func start(tb testing.TB, bin string, args func(dir string, port int) []string) *Server {
	tb.Helper()
	path, err := programs.Path(bin)
	if err != nil {
		tb.Fatalf("Redis 7 or later is needed: %v", err)
	}
	for try := 0; ; try++ {
		port := freePort(tb)
		s := &Server{Addr: "127.0.0.1:" + strconv.Itoa(port), Dir: tb.TempDir(), tb: tb, bin: path}
		s.args = args(s.Dir, port)
		if err := s.run(); err == nil {
			tb.Cleanup(s.Kill)
			return s
		} else if try == 5 { // the port was in use at every try
			log, _ := os.ReadFile(filepath.Join(s.Dir, "redis.log"))
			tb.Fatalf("%s does not start: %v\n%s", bin, err, log)
		}
	}
}

// freePort returns a free port whose cluster bus port exists.
func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// run starts the process and waits until it answers, or has exited.
func (s *Server) run() error {
	s.cmd = exec.Command(s.bin, s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no orphan if the test is killed
	if err := s.cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	s.done = done
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(done)
	}(s.cmd)
	for {
		if reply, err := ping(s.Addr); err == nil && reply {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("it exited: %s", s.cmd.ProcessState)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ping reports whether the server answers a PING, even with an error.
func ping(addr string) (bool, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false, err
	}
	b := make([]byte, 64)
	n, err := c.Read(b)
	return n > 0 && !strings.HasPrefix(string(b[:n]), "-LOADING"), err
}

// URL of the server for creel.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Port it listens on.
func (s *Server) Port() int {
	_, p, _ := net.SplitHostPort(s.Addr)
	n, _ := strconv.Atoi(p)
	return n
}

// Kill ends the process as kill -9 does, and waits for it.
func (s *Server) Kill() {
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Pause stops the process without ending it; connections stay open.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Restart starts a killed process again, with its data directory and port.
func (s *Server) Restart() {
	s.tb.Helper()
	for try := 0; ; try++ {
		err := s.run()
		if err == nil {
			return
		}
		if try == 20 {
			log, _ := os.ReadFile(filepath.Join(s.Dir, "redis.log"))
			s.tb.Fatalf("%s does not start again: %v\n%s", s.bin, err, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Snapshot makes the server save all its data, and returns it for GoBack.
func (s *Server) Snapshot() []byte {
	s.tb.Helper()
	s.Do("SAVE")
	data, err := os.ReadFile(filepath.Join(s.Dir, "dump.rdb"))
	if err != nil {
		s.tb.Fatal(err)
	}
	return data
}

// GoBack kills the server and starts it with the content of a Snapshot. The server must not have an append-only file.
func (s *Server) GoBack(snapshot []byte) {
	s.tb.Helper()
	s.Kill()
	if err := os.WriteFile(filepath.Join(s.Dir, "dump.rdb"), snapshot, 0o600); err != nil {
		s.tb.Fatal(err)
	}
	s.Restart()
}

// Client is a plain client of the server, closed at the end of the test.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Do sends one command over a separate connection and fails the test on an error.
func (s *Server) Do(args ...any) any {
	s.tb.Helper()
	v, err := s.Try(args...)
	if err != nil {
		s.tb.Fatalf("%v: %v", args, err)
	}
	return v
}

// Try is Do that returns the error.
func (s *Server) Try(args ...any) (any, error) {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	return c.Do(context.Background(), args...).Result()
}

// replication returns the replication section of a server's INFO; "" while the server cuts connections, as at a change
// of its role.
func (s *Server) replication() string {
	v, err := s.Try("INFO", "replication")
	if err != nil {
		return ""
	}
	text, _ := v.(string)
	return text
}

// until polls a condition that a healthy system reaches by itself.
func (s *Server) until(what string, cond func() bool) {
	s.tb.Helper()
	for !cond() {
		select {
		case <-s.done:
			s.tb.Fatalf("%s exited while waiting until %s", s.bin, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Cluster is a Redis Cluster of primaries without replicas.
type Cluster struct{ Nodes []*Server }

// StartCluster runs n primaries that share the slots evenly.
func StartCluster(tb testing.TB, n int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{}
	bus := make([]int, n)
	for i := range n {
		bus[i] = freePort(tb)
		c.Nodes = append(
			c.Nodes,
			Start(tb, append([]string{
				"--cluster-enabled",
				"yes",
				"--cluster-config-file",
				"nodes.conf",
				"--cluster-node-timeout",
				"2000",
				"--cluster-port",
				strconv.Itoa(bus[i]),
				"--cluster-require-full-coverage",
				"no",
			}, args...)...),
		)
	}
	for i, s := range c.Nodes {
		s.Do("CLUSTER", "ADDSLOTSRANGE", 16384*i/n, 16384*(i+1)/n-1)
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for _, s := range c.Nodes[1:] {
		s.Do("CLUSTER", "MEET", "127.0.0.1", c.Nodes[0].Port(), bus[0])
	}
	c.awaitWhole()
	return c
}

func (c *Cluster) awaitWhole() {
	for _, s := range c.Nodes {
		s.until("the cluster is whole", func() bool {
			v, _ := s.Try("CLUSTER", "INFO")
			info, _ := v.(string)
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes))) &&
				strings.Contains(info, "cluster_slots_assigned:16384")
		})
	}
}

// Snapshot makes all nodes save their data. goBack kills them and starts them with it.
func (c *Cluster) Snapshot() (goBack func()) {
	var older [][]byte
	for _, s := range c.Nodes {
		older = append(older, s.Snapshot())
	}
	return func() {
		for i, s := range c.Nodes {
			s.GoBack(older[i])
		}
		c.awaitWhole()
	}
}

// URL of the cluster for creel.
func (c *Cluster) URL() string {
	var addrs []string
	for _, s := range c.Nodes {
		addrs = append(addrs, s.Addr)
	}
	return "redis-cluster://" + strings.Join(addrs, ",")
}

// Sentinels is a primary, a replica, and three Sentinels that watch them.
type Sentinels struct {
	Primary, Replica *Server
	Sentinels        []*Server
	Via              *Proxy // the path to Primary for every other process
}

// MasterName under which the Sentinels know the primary.
const MasterName = "creel"

// These are the times, in ms, after which Sentinels consider a silent primary down: normally, and
// during AwaitFailover.
const (
	patience   = 3_600_000
	impatience = 1000
)

// StartSentinels starts them. The Sentinels consider the primary down only during AwaitFailover, so
// that a stalled machine does not break a test. The replica and, through the Sentinels, the clients
// use a Proxy's address for the primary, so that cutting Via partitions it from all of them.
func StartSentinels(tb testing.TB, args ...string) *Sentinels {
	tb.Helper()
	s := &Sentinels{Primary: Start(tb, args...)}
	s.Via = NewProxy(tb, s.Primary.Addr)
	_, viaPort, _ := net.SplitHostPort(s.Via.Addr)
	s.Primary.Do("CONFIG", "SET", "replica-announce-ip", "127.0.0.1", "replica-announce-port", viaPort)
	s.Replica = Start(tb, append([]string{"--replicaof", "127.0.0.1 " + viaPort}, args...)...)
	AwaitReplica(s.Primary)
	for range 3 {
		s.Sentinels = append(s.Sentinels, start(tb, "redis-sentinel", func(dir string, port int) []string {
			conf := filepath.Join(dir, "sentinel.conf")
			text := fmt.Sprintf(
				"port %d\nbind 127.0.0.1\ndir %s\nlogfile %s\nsentinel monitor %s 127.0.0.1 %s 2\n"+
					"sentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s 3000\nsentinel parallel-syncs %s 1\n",
				port,
				dir,
				filepath.Join(dir, "redis.log"),
				MasterName,
				viaPort,
				MasterName,
				patience,
				MasterName,
				MasterName,
			)
			if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
				tb.Fatal(err)
			}
			return []string{conf}
		}))
	}
	// They poll several times a second: failovers are real, but tests wait less.
	for _, w := range s.Sentinels {
		w.Do("SENTINEL", "DEBUG", "info-period", 200, "ping-period", 500, "ask-period", 100, "publish-period", 100)
	}
	for _, w := range s.Sentinels {
		w.until("the Sentinels know each other and the replica", func() bool {
			v, err := w.Try("SENTINEL", "MASTER", MasterName)
			if err != nil {
				return false
			}
			m := pairs(v)
			return m["num-slaves"] == "1" && m["num-other-sentinels"] == "2" && m["flags"] == "master"
		})
	}
	return s
}

// AwaitReplica waits until a primary's replica follows it. Redis reports a replica as online up to a second
// before the primary starts to send it writes.
func AwaitReplica(primary *Server) {
	primary.tb.Helper()
	primary.until("the replica is in step", func() bool {
		primary.Do("PUBLISH", "redistest", "something to follow")
		_, line, found := strings.Cut(primary.replication(), "slave0:")
		line, _, _ = strings.Cut(line, "\r\n")
		return found && strings.Contains(line, "state=online") && !strings.Contains(line, "offset=0,")
	})
}

func pairs(v any) map[string]string {
	m := map[string]string{}
	switch list := v.(type) {
	case []any:
		for i := 0; i+1 < len(list); i += 2 {
			m[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
		}
	case map[any]any:
		for k, v := range list {
			m[fmt.Sprint(k)] = fmt.Sprint(v)
		}
	}
	return m
}

// URL of the primary that the Sentinels elect, for creel.
func (s *Sentinels) URL() string {
	var addrs []string
	for _, w := range s.Sentinels {
		addrs = append(addrs, w.Addr)
	}
	return "redis-sentinel://" + strings.Join(addrs, ",") + "/" + MasterName
}

// Snapshot makes the primary save its data. goBack kills both servers and starts them with it.
func (s *Sentinels) Snapshot() (goBack func()) {
	older := s.Primary.Snapshot()
	return func() {
		s.Replica.Kill()
		s.Primary.GoBack(older)
		s.Replica.Restart()
		AwaitReplica(s.Primary)
	}
}

// Detach ends the replication once the replica has all data: a failover loses later writes.
func (s *Sentinels) Detach() {
	s.Primary.tb.Helper()
	ctx := context.Background()
	c := s.Primary.Client().Conn() // WAIT counts replicas that have the connection's own writes
	defer func() { _ = c.Close() }()
	if err := c.Set(ctx, "redistest", "the last write", 0).Err(); err != nil {
		s.Primary.tb.Fatal(err)
	}
	if n, err := c.Wait(ctx, 1, 0).Result(); n != 1 {
		s.Primary.tb.Fatalf("%d replicas have the last write: %v", n, err)
	}
	s.Primary.Do("ACL", "SETUSER", "default", "-psync", "-sync")
	s.Primary.Do("CLIENT", "KILL", "TYPE", "replica")
	s.Primary.until("the replica is detached", func() bool {
		return strings.Contains(s.Primary.replication(), "connected_slaves:0")
	})
}

// AwaitFailover waits until the replica has become the primary; the caller has silenced the primary before.
func (s *Sentinels) AwaitFailover() {
	s.Replica.tb.Helper()
	wait := func(ms int) {
		for _, w := range s.Sentinels {
			w.Do("SENTINEL", "SET", MasterName, "down-after-milliseconds", ms)
		}
	}
	wait(impatience)
	s.Replica.until("the replica is promoted", func() bool {
		return strings.Contains(s.Replica.replication(), "role:master")
	})
	for _, w := range s.Sentinels {
		w.until("the Sentinels name the new primary", func() bool {
			v, err := w.Try("SENTINEL", "MASTER", MasterName)
			return err == nil && pairs(v)["port"] == strconv.Itoa(s.Replica.Port())
		})
	}
	wait(patience)
}
