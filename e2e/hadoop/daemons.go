// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
)

// Daemon is a running Hadoop daemon with its configuration directory.
type Daemon struct {
	*process.Process
	Conf    Conf
	ConfDir string
	command process.Command
	args    func(Version) []string
	ready   string
}

// AddOpens is the one flag that RM, NodeManager and Router need on Java 17. Their web applications define classes by
// reflection.
const AddOpens = "--add-opens=java.base/java.lang=ALL-UNNAMED"

// Quick makes a JVM compile simply and skip bytecode verification. Short-lived programs then need a third less
// processor time, which limits the end-to-end tests. Long-running programs become slower, so benchmarks do not use it.
const Quick = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"

// jvm returns the command line of a class.
func jvm(t testing.TB, classPath string, flags []string, class string, args ...string) []string {
	t.Helper()
	line := append([]string{Java(t), "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"}, flags...)
	line = append(line, "-cp", classPath, class)
	return append(line, args...)
}

// ClassPath returns the configuration directory, the version's jars, and creel's Java helpers.
func ClassPath(t testing.TB, v Version, confDir string) string {
	t.Helper()
	return strings.Join([]string{confDir, Jars(t, v) + "/*", Helpers(t, v)}, ":")
}

func heap(mb, standard int) string {
	if mb == 0 {
		mb = standard
	}
	return fmt.Sprintf("-Xmx%dm", mb)
}

func launch(t testing.TB, name, dir string, conf Conf, flags []string, class, ready string) *Daemon {
	t.Helper()
	return launchOf(t, V342, name, dir, conf, flags, class, ready)
}

// launchOf is launch for a release.
func launchOf(t testing.TB, v Version, name, dir string, conf Conf, flags []string, class, ready string) *Daemon {
	t.Helper()
	d := &Daemon{Conf: conf, ConfDir: filepath.Join(dir, "conf"), ready: ready}
	if _, measured := t.(*testing.B); !measured {
		flags = append(strings.Fields(Quick), flags...)
	}
	path := ""
	if conf[jdbcClass] != "" {
		path = ":" + mariaDBDriver(t) + "/*"
	}
	d.args = func(v Version) []string { return jvm(t, ClassPath(t, v, d.ConfDir)+path, flags, class) }
	conf.Write(t, d.ConfDir)
	d.command = process.Command{
		Name: name,
		Dir:  dir,
		Args: d.args(v),
		Env:  []string{"HADOOP_HOME=" + dir, "HADOOP_CONF_DIR=" + d.ConfDir},
		// a NodeManager's containers have sessions of their own
		Sweep: conf["yarn.nodemanager.local-dirs"],
	}
	d.start(t)
	return d
}

// start starts the daemon for the first time. Daemons end in the reverse order of their first starts, despite restarts.
// So nodes end before an RM that was started before them.
func (d *Daemon) start(t testing.TB) {
	t.Helper()
	d.Process = process.Spawn(t, d.command)
	t.Cleanup(func() { d.Process.End(t) })
	if d.ready != "" {
		d.WaitLine(t, d.ready)
	}
}

// Restart restarts the daemon with the same configuration, on the same ports, and waits until it is ready. It first
// stops the daemon if it still runs. Call KillAlone first if a NodeManager's containers must live on.
func (d *Daemon) Restart(t testing.TB) {
	t.Helper()
	if !d.Ended() {
		d.Process.Stop()
	}
	d.Process = process.Spawn(t, d.command)
	d.WaitLine(t, d.ready)
}

// Upgrade restarts the daemon with another release.
func (d *Daemon) Upgrade(t testing.TB, v Version) {
	t.Helper()
	d.command.Args = d.args(v)
	d.Restart(t)
}

// RM are the options of a ResourceManager; the zero value is usable.
type RM struct {
	Version Version // default V342
	Name    string  // default "rm"
	HeapMB  int     // default 384
	Conf    Conf    // takes precedence over the defaults
	NoWait  bool    // do not wait for it to become active (a standby, a bad configuration)
}

// ResourceManager is a real ResourceManager of Hadoop.
type ResourceManager struct {
	*Daemon
	Addresses
}

// StartRM starts a ResourceManager with the CapacityScheduler on free loopback ports, and waits until all its ports are
// open. Its queues are root.default (70%) and root.other (30%). Each may use the whole cluster.
func StartRM(t testing.TB, o RM) *ResourceManager {
	t.Helper()
	if o.Name == "" {
		o.Name = "rm"
	}
	dir := tempDir(t, o.Name)
	a := freeAddresses(t)
	conf := rmConf(t, dir).With(a.Conf(), o.Conf)
	ready := "Transitioned to active state"
	if o.NoWait {
		ready = ""
	}
	v, flags := cmp.Or(o.Version, V342), []string{heap(o.HeapMB, 384), AddOpens}
	d := launchOf(t, v, o.Name, dir, conf, flags, resourceManager, ready)
	return &ResourceManager{Daemon: d, Addresses: a}
}

const resourceManager = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"

// freeAddresses returns loopback ports for all of a ResourceManager's listeners.
func freeAddresses(t testing.TB) Addresses {
	t.Helper()
	const host = "127.0.0.1"
	return Addresses{
		Client:    process.FreeAddress(t, host),
		Scheduler: process.FreeAddress(t, host),
		Tracker:   process.FreeAddress(t, host),
		Admin:     process.FreeAddress(t, host),
		Web:       process.FreeAddress(t, host),
	}
}

// rmConf returns the settings of every ResourceManager of the kit except its addresses.
func rmConf(t testing.TB, dir string) Conf {
	t.Helper()
	return common(t, dir).With(Conf{
		"yarn.resourcemanager.scheduler.class":                            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
		"yarn.scheduler.minimum-allocation-mb":                            "128",
		"yarn.scheduler.maximum-allocation-mb":                            "4096",
		"yarn.cluster.max-application-priority":                           "10",
		"yarn.resourcemanager.placement-constraints.handler":              "placement-processor",
		"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
		"yarn.nodemanager.log-dirs":                                       filepath.Join(dir, "logs"),
	}, Queues())
}

// Queues is the capacity-scheduler.xml of the kit. root.default and root.other permit one user to use the whole queue,
// and leave room for AMs.
func Queues() Conf {
	q := Conf{
		"yarn.scheduler.capacity.root.queues":                 "default,other",
		"yarn.scheduler.capacity.maximum-am-resource-percent": "0.6",
		"yarn.scheduler.capacity.resource-calculator":         "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
		"yarn.scheduler.capacity.root.default.capacity":       "70",
		"yarn.scheduler.capacity.root.other.capacity":         "30",
		"yarn.scheduler.capacity.node-locality-delay":         "0",
	}
	for _, name := range []string{"default", "other"} {
		q["yarn.scheduler.capacity.root."+name+".maximum-capacity"] = "100"
		q["yarn.scheduler.capacity.root."+name+".user-limit-factor"] = "10"
		q["yarn.scheduler.capacity.root."+name+".state"] = "RUNNING"
	}
	return q
}

// NM are the options of a NodeManager.
type NM struct {
	Name     string    // default "nm"; two on one machine need different names
	RM       Addresses // where to register; a plain set-up uses only Tracker
	Host     string    // loopback address; the default 127.0.0.1 is named localhost
	MemoryMB int       // default 4096
	VCores   int       // default 8
	HeapMB   int       // default 256
	Conf     Conf      // takes precedence over the defaults
}

// NodeManager is a real NodeManager of Hadoop.
type NodeManager struct {
	*Daemon
	Address string // "host:port" as configured; the node's id has the resolved name
	Web     string
	ID      string // id with which the node registered, "localhost:21145"
}

// registered matches the log line with a NodeManager's id.
const registered = "Registered with ResourceManager as "

// StartNM starts a NodeManager with the shuffle service and log aggregation
// and waits until it has registered.
func StartNM(t testing.TB, o NM) *NodeManager {
	t.Helper()
	n := launchNM(t, o, registered)
	_, after, _ := strings.Cut(n.Output(), registered)
	n.ID = strings.Fields(after)[0]
	return n
}

// LaunchNM starts a NodeManager that cannot register, and does not wait.
func LaunchNM(t testing.TB, o NM) *NodeManager {
	t.Helper()
	return launchNM(t, o, "")
}

func launchNM(t testing.TB, o NM, ready string) *NodeManager {
	t.Helper()
	if o.Name == "" {
		o.Name = "nm"
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	dir := tempDir(t, o.Name)
	n := &NodeManager{Address: process.FreeAddress(t, o.Host), Web: process.FreeAddress(t, o.Host)}
	conf := common(t, dir).With(o.RM.Conf(), Conf{
		"yarn.nodemanager.hostname":          o.Host,
		"yarn.nodemanager.address":           n.Address,
		"yarn.nodemanager.webapp.address":    n.Web,
		"yarn.nodemanager.localizer.address": process.FreeAddress(t, o.Host),
		"yarn.nodemanager.local-dirs":        filepath.Join(dir, "local"),
		"yarn.nodemanager.log-dirs":          filepath.Join(dir, "logs"),
		"yarn.nodemanager.resource.memory-mb": strconv.Itoa(
			or(o.MemoryMB, 4096),
		),
		"yarn.nodemanager.resource.cpu-vcores":                  strconv.Itoa(or(o.VCores, 8)),
		"yarn.nodemanager.vmem-check-enabled":                   "false",
		"yarn.nodemanager.pmem-check-enabled":                   "false",
		"yarn.nodemanager.aux-services":                         "mapreduce_shuffle",
		"yarn.nodemanager.aux-services.mapreduce_shuffle.class": "org.apache.hadoop.mapred.ShuffleHandler",
		"mapreduce.shuffle.port": strconv.Itoa(
			process.FreePort(t, o.Host),
		),
		// A full disk of the machine must not end a node in the middle of a test.
		"yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
		"yarn.nodemanager.opportunistic-containers-max-queue-length":                    "10",
		"yarn.log-aggregation-enable":                                                   "true",
		"yarn.nodemanager.remote-app-log-dir": filepath.Join(
			dir,
			"remote-logs",
		),
	}, o.Conf)
	for _, key := range []string{
		"yarn.nodemanager.local-dirs",
		"yarn.nodemanager.log-dirs",
		"yarn.nodemanager.remote-app-log-dir",
	} {
		if err := os.MkdirAll(conf[key], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.Daemon = launch(t, o.Name, dir, conf, []string{heap(o.HeapMB, 256), AddOpens},
		"org.apache.hadoop.yarn.server.nodemanager.NodeManager", ready)
	return n
}

// Router are the options of a Hadoop Router.
type Router struct {
	RM     Addresses // the RM behind a plain forwarder; empty in federation mode
	HeapMB int       // default 384
	Conf   Conf      // federation keys; takes precedence over the defaults
}

// StartRouter starts a Router and waits until its last port is open.
func StartRouter(t testing.TB, o Router) *ResourceManager {
	t.Helper()
	dir := tempDir(t, "router")
	const host = "127.0.0.1"
	a := Addresses{
		Client: process.FreeAddress(t, host),
		Admin:  process.FreeAddress(t, host),
		Web:    process.FreeAddress(t, host),
	}
	conf := common(t, dir).With(o.RM.Conf(), Conf{
		"yarn.router.clientrm.address": a.Client,
		"yarn.router.rmadmin.address":  a.Admin,
		"yarn.router.webapp.address":   a.Web,
	}, o.Conf)
	d := launch(t, "router", dir, conf, []string{heap(o.HeapMB, 384), AddOpens},
		"org.apache.hadoop.yarn.server.router.Router", "Router RMAdminService listening on address")
	return &ResourceManager{Daemon: d, Addresses: a}
}

// StartPolicyGenerator starts Hadoop's global policy generator, and waits until its tasks are scheduled.
func StartPolicyGenerator(t testing.TB, conf Conf) *Daemon {
	t.Helper()
	dir := tempDir(t, "gpg")
	d := &Daemon{ConfDir: filepath.Join(dir, "conf"), ready: "Scheduled policy-generator with interval"}
	d.Conf = common(t, dir).With(Conf{"yarn.federation.gpg.webapp.address": process.FreeAddress(t, "127.0.0.1")}, conf)
	d.Conf.Write(t, d.ConfDir)
	path := ClassPath(t, V342, d.ConfDir) + ":" + fetched(t, "gpg", "pom-gpg.xml", "Hadoop's policy generator") + "/*"
	d.command = process.Command{
		Name: "gpg", Dir: dir, Env: []string{"HADOOP_HOME=" + dir, "HADOOP_CONF_DIR=" + d.ConfDir},
		Args: jvm(t, path, append(strings.Fields(Quick), heap(0, 256), AddOpens),
			"org.apache.hadoop.yarn.server.globalpolicygenerator.GlobalPolicyGenerator"),
	}
	d.start(t)
	return d
}

// stores is the package of Hadoop's federation stores.
const stores = "org.apache.hadoop.yarn.server.federation.store.impl."

// Federation returns the properties that all daemons of one Hadoop federation share: its store in ZooKeeper, and short
// intervals.
func Federation(zookeeper string) Conf {
	return federation(stores + "ZookeeperFederationStateStore").With(Conf{"hadoop.zk.address": zookeeper})
}

const jdbcClass = "yarn.federation.state-store.sql.jdbc-class"

// FederationInMariaDB is Federation with the store in a database of MariaDB.
func FederationInMariaDB(address, database, user, password string) Conf {
	const key = "yarn.federation.state-store.sql."
	return federation(stores + "SQLFederationStateStore").With(Conf{
		jdbcClass: "org.mariadb.jdbc.MariaDbDataSource", key + "url": "jdbc:mariadb://" + address + "/" + database,
		key + "username": user, key + "password": password, key + "max-connections": "4",
	})
}

// federation has short intervals, so that a new subcluster appears within seconds.
func federation(store string) Conf {
	return Conf{
		"yarn.federation.enabled":                             "true",
		"yarn.federation.state-store.class":                   store,
		"yarn.federation.cache-ttl.secs":                      "5",
		"yarn.federation.state-store.heartbeat-interval-secs": "10",
		"yarn.federation.state-store.heartbeat.initial-delay": "2s",
		"yarn.federation.non-ha.enabled":                      "true",
		"yarn.federation.failover.enabled":                    "false",
		"yarn.am.liveness-monitor.expiry-interval-ms":         "900000",
	}
}

// RouterPipelines makes a Router serve a federation.
func RouterPipelines() Conf {
	const base = "org.apache.hadoop.yarn.server.router."
	return Conf{
		"yarn.router.clientrm.interceptor-class.pipeline": base + "clientrm.FederationClientInterceptor",
		"yarn.router.rmadmin.interceptor-class.pipeline":  base + "rmadmin.FederationRMAdminInterceptor",
		"yarn.router.webapp.interceptor-class.pipeline":   base + "webapp.FederationInterceptorREST",
	}
}

func or(v, standard int) int {
	if v == 0 {
		return standard
	}
	return v
}
