// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/programs"
)

// Daemon is a process of the creel binary. Tests can kill and restart it.
type Daemon struct {
	*process.Process
	Name    string
	dir     string
	args    []string
	started int
}

// start runs "creel ROLE --conf DIR ARGS..." and waits until it serves, at the addresses of its configuration.
func start(t testing.TB, name, role string, conf hadoop.Conf, args ...string) *Daemon {
	t.Helper()
	dir := tempDir(t, name)
	d := &Daemon{Name: name, dir: dir}
	conf.Write(t, filepath.Join(dir, "conf"))
	d.args = append(
		[]string{rm.Binary(t), role, "--conf", filepath.Join(dir, "conf"), "--drain-timeout", "5s"},
		args...)
	d.spawn(t)
	t.Cleanup(func() { d.Process.End(t) })
	return d
}

// Conf is the daemon's configuration directory.
func (d *Daemon) Conf() string { return filepath.Join(d.dir, "conf") }

func (d *Daemon) spawn(t testing.TB) {
	t.Helper()
	d.started++
	ready := filepath.Join(d.dir, "ready."+strconv.Itoa(d.started))
	d.Process = process.Spawn(
		t,
		process.Command{
			Name: d.Name,
			Dir:  d.dir,
			Args: append(append([]string(nil), d.args...), "--ready-file", ready),
		},
	)
	var entry struct{ PID int }
	d.Await(t, "the ready file", func() bool {
		b, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(b, &entry) == nil
	})
	if entry.PID != d.PID() {
		t.Fatalf("%s: the ready file names process %d, not %d", d.Name, entry.PID, d.PID())
	}
}

// Restart starts the daemon again after a Kill, on the same ports.
func (d *Daemon) Restart(t testing.TB) {
	t.Helper()
	if !d.Ended() {
		d.Kill()
	}
	d.spawn(t)
}

// Creel runs a creel command line that must succeed.
func (f *Federation) Creel(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(rm.Binary(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("creel %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// tempDir returns a directory for one process of one test, with a short name.
func tempDir(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "creel-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("CREEL_KEEP") != "" {
			t.Logf("kept %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the directory of %s is still in use: %v", name, err)
		}
	})
	return dir
}

// Subcluster is one member: its ResourceManager, its node, and the proxy beside the node.
type Subcluster struct {
	ID        string
	RM        *Daemon                 // creel's; nil for Hadoop's
	Hadoop    *hadoop.ResourceManager // its ResourceManager, if it is Hadoop's
	Agent     *Daemon                 // its agent, for Hadoop's
	Addresses hadoop.Addresses
	Proxy     *Daemon
	Node      *hadoop.NodeManager
	address   string // loopback address of its node and proxy
}

// Federation is a running federation.
type Federation struct {
	Store           string // URL
	Routers         []*Daemon
	RouterAddresses []hadoop.Addresses
	Subclusters     []*Subcluster
	Gateway         *Daemon // the proxy for AMs outside of the nodes
	Logs            string  // directory of the nodes' aggregated logs
	proxyPort       int
}

// Options of a federation.
type Options struct {
	Subclusters int         // default 2
	Routers     int         // default 2
	NoNodes     bool        // leave out the NodeManagers
	NoWait      bool        // do not wait for a router to see every member, which needs a login
	Conf        hadoop.Conf // of all creel daemons, wins over the defaults; its store, or else a Redis server, is used
	Policy      string      // document for root; default the built-in policy
}

// StartRedis starts a Redis server without persistence and returns its URL.
func StartRedis(t testing.TB) (*process.Process, string) {
	t.Helper()
	path, err := programs.Path("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	address := process.FreeAddress(t, "127.0.0.1")
	host, port, _ := net.SplitHostPort(address)
	p := process.Start(t, process.Command{Name: "redis", Dir: tempDir(t, "redis"),
		Args: []string{path, "--bind", host, "--port", port, "--save", "", "--appendonly", "no"}})
	p.WaitLine(t, "Ready to accept connections")
	return p, "redis://" + address
}

// Start starts a federation and waits until a router sees every node.
func Start(t testing.TB, o Options) *Federation {
	t.Helper()
	if o.Subclusters == 0 {
		o.Subclusters = 2
	}
	if o.Routers == 0 {
		o.Routers = 2
	}
	f := &Federation{Logs: tempDir(t, "logs"), Store: o.Conf["creel.store.url"]}
	if f.Store == "" {
		_, f.Store = StartRedis(t)
	}
	hosts := []string{"127.0.0.1"}
	for i := range o.Subclusters {
		hosts = append(hosts, fmt.Sprintf("127.0.0.%d", i+2))
	}
	if o.Policy != "" {
		f.Creel(t, "policy", "set", "root", o.Policy, "--store", f.Store)
	}
	f.proxyPort = commonPort(t, hosts)
	f.Gateway = f.StartProxy(t, "gateway", hosts[0], o.Conf)
	for i := range o.Subclusters {
		f.Subclusters = append(f.Subclusters, f.StartSubcluster(t, i+1, o.Conf))
	}
	for _, s := range f.Subclusters {
		if !o.NoNodes {
			s.Node = f.StartNode(t, "nm-"+s.ID, s.address, s.Addresses)
		}
	}
	for i := range o.Routers {
		f.StartRouter(t, i+1, o.Conf)
	}
	if o.NoWait {
		return f
	}
	f.Await(t, len(f.Nodes()))
	for _, addresses := range f.RouterAddresses {
		AwaitActive(t, addresses.Web, o.Subclusters)
	}
	return f
}

// commonPort returns a port that is free on all hosts.
func commonPort(t testing.TB, hosts []string) int {
	t.Helper()
	for range 100 {
		port := process.FreePort(t, hosts[0])
		free := true
		for _, h := range hosts[1:] {
			l, err := net.Listen("tcp", net.JoinHostPort(h, strconv.Itoa(port)))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return port
		}
	}
	t.Fatalf("no port is free on all of %v", hosts)
	return 0
}

// common returns the settings of every creel daemon of the federation: Hadoop's keys with Hadoop's meaning, and short
// intervals so that tests need not wait.
func (f *Federation) common(t testing.TB, more ...hadoop.Conf) hadoop.Conf {
	u := hadoop.OSUser(t)
	return hadoop.Conf{
		"fs.defaultFS":                                                    "file:///",
		"hadoop.http.staticuser.user":                                     u,
		"hadoop.proxyuser." + u + ".hosts":                                "*",
		"hadoop.proxyuser." + u + ".groups":                               "*",
		"creel.store.url":                                                 f.Store,
		"creel.store.poll-interval":                                       "500ms",
		"creel.membership.heartbeat-interval":                             "500ms",
		"creel.membership.lease":                                          "5s",
		"yarn.nodemanager.amrmproxy.address":                              "127.0.0.1:" + strconv.Itoa(f.proxyPort),
		"yarn.scheduler.minimum-allocation-mb":                            "128",
		"yarn.scheduler.maximum-allocation-mb":                            "4096",
		"yarn.cluster.max-application-priority":                           "10",
		"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
	}.With(hadoop.Queues()).With(more...)
}

// StartProxy starts an AM-RM proxy on a host's loopback address.
func (f *Federation) StartProxy(t testing.TB, name, host string, more hadoop.Conf) *Daemon {
	t.Helper()
	return start(t, "proxy-"+name, "proxy", f.common(t, more).With(hadoop.Conf{
		"yarn.nodemanager.amrmproxy.address": net.JoinHostPort(host, strconv.Itoa(f.proxyPort)),
	}))
}

// StartSubcluster starts one of creel's ResourceManagers with its proxy. The caller starts the node.
func (f *Federation) StartSubcluster(t testing.TB, number int, more hadoop.Conf) *Subcluster {
	t.Helper()
	const host = "127.0.0.1"
	s := &Subcluster{ID: fmt.Sprintf("sc-%d", number), address: fmt.Sprintf("127.0.0.%d", number+1)}
	s.Addresses = hadoop.Addresses{
		Client:    process.FreeAddress(t, host),
		Scheduler: process.FreeAddress(t, host),
		Tracker:   process.FreeAddress(t, host),
		Admin:     process.FreeAddress(t, host),
		Web:       process.FreeAddress(t, host),
	}
	s.Proxy = f.StartProxy(t, s.ID, s.address, more)
	conf := f.common(t, more).With(s.Addresses.Conf(), hadoop.Conf{
		"yarn.resourcemanager.epoch": strconv.Itoa(number * 1000), // keeps container ids of the subclusters apart
		// Nodes have addresses of their own on one host; some AMs name the host.
		"creel.rm.proxy.hosts": "*",
	})
	s.RM = start(t, "rm-"+s.ID, "rm", conf, "--subcluster", s.ID, "--data", tempDir(t, "data"))
	return s
}

// StartHadoop starts Hadoop's ResourceManager as a member, with its agent. The caller starts the node and its proxy.
// After a restart it recovers from files.
func (f *Federation) StartHadoop(t testing.TB, number int) *Subcluster {
	t.Helper()
	return f.StartHadoopOf(t, hadoop.V342, number, nil)
}

// StartHadoopOf is StartHadoop for a release, with additional settings of the ResourceManager and its agent.
func (f *Federation) StartHadoopOf(t testing.TB, v hadoop.Version, number int, more hadoop.Conf) *Subcluster {
	t.Helper()
	s := &Subcluster{ID: fmt.Sprintf("sc-%d", number), address: fmt.Sprintf("127.0.0.%d", number+1)}
	s.Hadoop = hadoop.StartRM(t, hadoop.RM{Version: v, Name: "rm-" + s.ID, Conf: hadoop.Conf{
		// Container ids must differ between members, and Hadoop uses the epoch only with recovery.
		"yarn.resourcemanager.epoch":                                       strconv.Itoa(number * 1000),
		"yarn.resourcemanager.recovery.enabled":                            "true",
		"yarn.resourcemanager.store.class":                                 "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
		"yarn.resourcemanager.fs.state-store.uri":                          "file://" + tempDir(t, "rmstate"),
		"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
		// Its wait for an AM whose start a kill interrupted.
		"yarn.am.liveness-monitor.expiry-interval-ms": "60000",
	}.With(more)})
	s.Addresses = s.Hadoop.Addresses
	s.Agent = start(t, "agent-"+s.ID, "agent", f.common(t, s.Addresses.Conf(), more), "--subcluster", s.ID)
	return s
}

// Restarted kills the member's ResourceManager and starts it again.
func (s *Subcluster) Restarted(t testing.TB) {
	t.Helper()
	if s.Hadoop != nil {
		s.Hadoop.Kill()
		s.Hadoop.Restart(t)
		return
	}
	s.RM.Kill()
	s.RM.Restart(t)
}

// StartNode starts a real NodeManager.
func (f *Federation) StartNode(t testing.TB, name, host string, addresses hadoop.Addresses) *hadoop.NodeManager {
	t.Helper()
	return hadoop.StartNM(t, hadoop.NM{Name: name, Host: host, RM: addresses,
		Conf: hadoop.Conf{
			"yarn.nodemanager.remote-app-log-dir": f.Logs,
			// Hadoop's default is 15 minutes. A node and the maps' output on it outlive its ResourceManager.
			"yarn.resourcemanager.connect.max-wait.ms":       "600000",
			"yarn.resourcemanager.connect.retry-interval.ms": "500",
		}})
}

// StartRouter starts one more router.
func (f *Federation) StartRouter(t testing.TB, number int, more hadoop.Conf) *Daemon {
	t.Helper()
	const host = "127.0.0.1"
	a := hadoop.Addresses{
		Client: process.FreeAddress(t, host),
		Admin:  process.FreeAddress(t, host),
		Web:    process.FreeAddress(t, host),
	}
	d := start(t, fmt.Sprintf("router-%d", number), "router", f.common(t, more).With(hadoop.Conf{
		"yarn.router.clientrm.address": a.Client,
		"yarn.router.rmadmin.address":  a.Admin,
		"yarn.router.webapp.address":   a.Web,
	}))
	f.Routers, f.RouterAddresses = append(f.Routers, d), append(f.RouterAddresses, a)
	return d
}

// ClientConf points a Hadoop client at a router, and its AMs at the proxy on their node.
func (f *Federation) ClientConf(router int) hadoop.Conf {
	a := f.RouterAddresses[router]
	a.Scheduler = "${env.NM_HOST:-127.0.0.1}:" + strconv.Itoa(f.proxyPort)
	return a.Conf()
}

// Nodes returns the ids of all nodes.
func (f *Federation) Nodes() (ids []string) {
	for _, s := range f.Subclusters {
		if s.Node != nil {
			ids = append(ids, s.Node.ID)
		}
	}
	return ids
}

// Await waits until every running router reports this number of active nodes.
func (f *Federation) Await(t testing.TB, nodes int) {
	t.Helper()
	for i, r := range f.Routers {
		if r.Ended() {
			continue
		}
		r.Await(t, fmt.Sprintf("%d active nodes", nodes), func() bool {
			var m struct {
				ClusterMetrics struct{ ActiveNodes int }
			}
			_, err := Call(t, http.MethodGet, f.RouterAddresses[i].Web, "/ws/v1/cluster/metrics", nil, &m)
			return err == nil && m.ClusterMetrics.ActiveNodes == nodes
		})
	}
}
