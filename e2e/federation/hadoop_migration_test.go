// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// migration is a federation of two members in which each part is Hadoop's or creel's: the router, the AM-RM proxies of
// the nodes, and each ResourceManager. All share one ZooKeeper.
type migration struct {
	*Federation
	t         *testing.T
	zooKeeper string
	records   *zkstate.Session                               // of Hadoop's store in ZooKeeper
	record    func(t *testing.T, app string) (string, error) // the record of an application's home
	shared    hadoop.Conf                                    // of all of Hadoop's daemons
	router    *hadoop.ResourceManager                        // Hadoop's
	creels    *Daemon                                        // creel's router
	client    hadoop.Client                                  // of both routers
	homes     map[string]*Subcluster                         // of each application that succeeded
}

// migrationQueues are the queues whose policies choose the first member and the second one as the home.
var migrationQueues = [2]string{"default", "other"}

// short are the intervals of creel's daemons in these tests.
var short = hadoop.Conf{
	"creel.store.poll-interval": "500ms", "creel.membership.heartbeat-interval": "500ms", "creel.membership.lease": "5s",
}

// startHadoopFederation starts two ResourceManagers with a node each, whose NodeManager has the AMRMProxy, and a Router.
func startHadoopFederation(t *testing.T) *migration {
	t.Helper()
	_, zooKeeper := hadoop.StartZooKeeper(t)
	session, err := zkstate.Connect(t.Context(), zkstate.Servers{Addresses: []string{zooKeeper}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	m := startHadoopFederationOver(t, zooKeeper, hadoop.Federation(zooKeeper))
	m.records = session
	m.record = func(t *testing.T, app string) (string, error) {
		record, _, err := session.Get(t.Context(), "/federationstore/applications/"+app)
		return string(record), err
	}
	return m
}

// startHadoopFederationOver is startHadoopFederation with a federation store. ResourceManagers keep their state in
// ZooKeeper.
func startHadoopFederationOver(t *testing.T, zooKeeper string, store hadoop.Conf) *migration {
	t.Helper()
	rm.Binary(t) // its build must not last longer than the first jobs
	m := &migration{
		Federation: &Federation{Logs: tempDir(t, "logs")}, t: t, zooKeeper: zooKeeper, homes: map[string]*Subcluster{},
		shared: store.With(hadoop.Conf{
			"hadoop.zk.address": zooKeeper, "yarn.federation.amrmproxy.hb.maximum.wait.ms": "500",
		}),
	}
	m.proxyPort = commonPort(t, []string{"127.0.0.2", "127.0.0.3"})
	for i := range migrationQueues {
		m.Subclusters = append(m.Subclusters, m.startHadoopMember(i+1))
	}
	m.router = hadoop.StartRouter(t, hadoop.Router{Conf: m.shared.With(hadoop.RouterPipelines())})
	const host = "127.0.0.1"
	a := hadoop.Addresses{
		Client: process.FreeAddress(t, host), Admin: process.FreeAddress(t, host), Web: process.FreeAddress(t, host),
	}
	m.RouterAddresses = []hadoop.Addresses{m.router.Addresses, a}
	m.client = hadoop.Client{Conf: m.routers()}.Setup(t)
	m.awaitNodes(t, m.router.Process, m.router.Web)
	admin := hadoop.Client{Conf: m.router.ClientConf().With(m.shared, hadoop.Conf{
		"yarn.router.rmadmin.address": m.router.Admin, "yarn.federation.policy-manager": weightedManager,
	})}
	for i, queue := range migrationQueues {
		admin.Run(t, hadoop.RouterCLI, "-policy", "-s",
			fmt.Sprintf("root.%s;%s:1;sc-1:0.5,sc-2:0.5;0.0", queue, m.Subclusters[i].ID)).OK(t)
	}
	time.Sleep(6 * time.Second) // Hadoop's Router caches for yarn.federation.cache-ttl.secs
	return m
}

// startHadoopMember starts a ResourceManager of Hadoop's and its node.
func (m *migration) startHadoopMember(number int) *Subcluster {
	m.t.Helper()
	s := &Subcluster{ID: fmt.Sprintf("sc-%d", number), address: fmt.Sprintf("127.0.0.%d", number+1)}
	const queues = "yarn.scheduler.capacity.root."
	s.Hadoop = hadoop.StartRM(m.t, hadoop.RM{Name: "rm-" + s.ID, Conf: m.shared.With(hadoop.Conf{
		queues + "queues": "default,other,team", queues + "default.capacity": "60", queues + "team.capacity": "10",
		queues + "team.queues": "a", queues + "team.a.capacity": "100",
		"yarn.resourcemanager.cluster-id":                                  s.ID,
		"yarn.resourcemanager.epoch":                                       strconv.Itoa(number * 1000),
		"yarn.resourcemanager.recovery.enabled":                            "true",
		"yarn.resourcemanager.store.class":                                 "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
		"yarn.resourcemanager.zk-state-store.parent-path":                  "/rmstore-" + s.ID,
		"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
	})})
	s.Addresses = s.Hadoop.Addresses
	s.Node = hadoop.StartNM(m.t, hadoop.NM{Name: "nm-" + s.ID, Host: s.address, RM: s.Addresses, Conf: m.shared.With(hadoop.Conf{
		"yarn.resourcemanager.cluster-id":                       s.ID,
		"yarn.nodemanager.amrmproxy.enabled":                    "true",
		"yarn.nodemanager.amrmproxy.address":                    s.address + ":" + strconv.Itoa(m.proxyPort),
		"yarn.nodemanager.amrmproxy.interceptor-class.pipeline": "org.apache.hadoop.yarn.server.nodemanager.amrmproxy.FederationInterceptor",
		"yarn.nodemanager.remote-app-log-dir":                   m.Logs,
		"yarn.resourcemanager.connect.max-wait.ms":              "600000",
		"yarn.resourcemanager.connect.retry-interval.ms":        "500",
	})})
	return s
}

// awaitNodes waits until a router reports the nodes of both members.
func (m *migration) awaitNodes(t *testing.T, p *process.Process, web string) {
	t.Helper()
	p.Await(t, "both members' nodes", func() bool {
		var doc struct {
			ClusterMetrics struct{ ActiveNodes int }
		}
		_, err := Call(t, http.MethodGet, web, "/ws/v1/cluster/metrics", nil, &doc)
		return err == nil && doc.ClusterMetrics.ActiveNodes == len(m.Subclusters)
	})
}

// awaitMembers waits until the router that serves reports both members and their nodes.
func (m *migration) awaitMembers(t *testing.T) {
	t.Helper()
	p := m.router.Process
	if m.router.Ended() {
		p = m.creels.Process
		AwaitActive(t, m.web(), len(m.Subclusters))
	}
	m.awaitNodes(t, p, m.web())
}

// web is the address of the router that serves now.
func (m *migration) web() string {
	if m.router.Ended() {
		return m.RouterAddresses[1].Web
	}
	return m.RouterAddresses[0].Web
}

// guide returns the words of a command of the guide after --conf DIR.
func (m *migration) guide(words string) []string { return rm.Guide(m.t, words, m.zooKeeper, "DIR")[3:] }

// movingJob is a MapReduce job whose maps sleep. Hadoop's shell cannot run behind Hadoop's Router, which does not pass
// on that a member has no resource profiles.
type movingJob struct {
	*process.Process
	id   string
	home *Subcluster
}

const migrationMaps = 4

// begin starts a job for each home through the router that serves now, and waits for its maps in both members.
func (m *migration) begin(t *testing.T, ms int) (jobs []*movingJob) {
	t.Helper()
	for i, queue := range migrationQueues {
		jobs = append(jobs, &movingJob{home: m.Subclusters[i], Process: m.client.Start(t, hadoop.SleepJob,
			"-Dmapreduce.job.queuename=root."+queue, "-m", strconv.Itoa(migrationMaps), "-r", "0", "-mt", strconv.Itoa(ms))})
	}
	for _, j := range jobs {
		j.WaitLine(t, "Submitted application application_")
		j.id = regexp.MustCompile(`application_\d+_\d+`).FindString(j.Output())
	}
	for _, j := range jobs {
		there, other := App{}, App{}
		if process.Poll(nil, func() bool {
			there, _, _ = Report(t, j.home.Addresses.Web, j.id)
			other, _, _ = Report(t, m.Other(j.home).Addresses.Web, j.id)
			return there.Containers+other.Containers > migrationMaps && other.Containers > 0 || j.Ended()
		}) != nil || j.Ended() {
			t.Fatalf("%s of home %s has not its containers in both members: %+v, %+v\n%s", j.id, j.home.ID, there, other, j.Tail(40))
		}
		t.Logf("%s has %d containers at its home %s, and %d elsewhere", j.id, there.Containers, j.home.ID, other.Containers)
	}
	return jobs
}

// end expects that the jobs still run, and that each succeeds. If no node was restarted, each map ran once, under one AM.
func (m *migration) end(t *testing.T, jobs []*movingJob, restarted bool) {
	t.Helper()
	for _, j := range jobs {
		if j.Ended() && !restarted {
			t.Errorf("%s ended before the change: %s", j.id, j.Tail(40))
		}
	}
	for _, j := range jobs {
		err := j.Exit()
		AwaitState(t, m.web(), j.id, "FINISHED")
		m.homes[j.id] = j.home
		if restarted {
			continue // its client may have lost the first AM
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", j.id, err, j.Tail(60))
		}
		if out := j.Output(); !strings.Contains(out, fmt.Sprintf("Launched map tasks=%d\n", migrationMaps)) ||
			strings.Contains(out, "Failed map tasks") || strings.Contains(out, "Killed map tasks") {
			t.Errorf("%s lost maps:\n%s", j.id, j.Tail(60))
		}
		out := m.client.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-list", j.id).OK(t).Stdout
		if !strings.Contains(out, "Total number of application attempts :1") {
			t.Errorf("%s has not one attempt:\n%s", j.id, out)
		}
	}
	for id, home := range m.homes {
		AwaitState(t, m.web(), id, "FINISHED")
		app, _, err := Report(t, home.Addresses.Web, id)
		if err != nil || app.State != "FINISHED" || app.FinalStatus != "SUCCEEDED" {
			t.Errorf("%s reports %s as %+v, %v", home.ID, id, app, err)
		}
		record, err := m.record(t, id)
		if err != nil || !strings.Contains(record, home.ID) || strings.Contains(record, m.Other(home).ID) {
			t.Errorf("the home of %s is %s, its record is %q, %v", id, home.ID, record, err)
		}
	}
	t.Logf("%d applications have their homes and states", len(m.homes))
}

// run runs a command of the guide for a member.
func (m *migration) run(t *testing.T, words string, s *Subcluster, path string) {
	t.Helper()
	args := []string{rm.Binary(t)}
	for _, word := range rm.Guide(t, words, m.zooKeeper, s.Hadoop.ConfDir) {
		args = append(args, forMember(word, s, path))
	}
	_, out, code := process.Run(context.Background(), t, process.Command{Name: words, Dir: t.TempDir(), Args: args})
	if t.Log(out); code != 0 {
		t.Fatalf("%v: exit code %d", args[1:], code)
	}
}

// forMember returns a word of the guide with the member's paths in ZooKeeper in place of the guide's.
func forMember(word string, s *Subcluster, path string) string {
	for _, of := range []string{path, "/creel"} {
		if strings.HasSuffix(word, of) {
			return word + "-" + s.ID
		}
	}
	return word
}

// startCreelsRouter starts creel's router beside Hadoop's.
func (m *migration) startCreelsRouter(t *testing.T) {
	a := m.RouterAddresses[1]
	m.creels = start(m.t, "router", "router", m.router.Daemon.Conf.With(short, hadoop.Conf{
		"yarn.router.clientrm.address": a.Client, "yarn.router.rmadmin.address": a.Admin, "yarn.router.webapp.address": a.Web,
	}), m.guide("creel router --conf /etc/hadoop/conf")...)
	AwaitActive(t, a.Web, len(m.Subclusters))
	m.awaitNodes(t, m.creels.Process, a.Web)
}

// toCreelsRouter starts creel's router, and stops Hadoop's.
func (m *migration) toCreelsRouter(t *testing.T) {
	m.startCreelsRouter(t)
	m.router.Stop()
}

// toCreelsProxies replaces the AMRMProxy of each node by creel's proxy, a node at a time.
func (m *migration) toCreelsProxies(t *testing.T) {
	for _, s := range m.Subclusters {
		s.Node.Stop()
		s.Proxy = start(m.t, "proxy-"+s.ID, "proxy", s.Node.Daemon.Conf.With(short),
			m.guide("creel proxy --conf /etc/hadoop/conf")...)
		m.restartNode(t, s, "false")
	}
}

func (m *migration) restartNode(t *testing.T, s *Subcluster, amrmProxy string) {
	t.Helper()
	s.Node.Daemon.Conf["yarn.nodemanager.amrmproxy.enabled"] = amrmProxy
	s.Node.Daemon.Conf.Write(t, s.Node.ConfDir)
	s.Node.Restart(t)
}

// toCreel replaces a member's ResourceManager by creel's, at the same addresses.
func (m *migration) toCreel(t *testing.T, s *Subcluster) {
	s.Hadoop.Stop()
	m.run(t, "creel rm import", s, "/rmstore")
	var args []string
	for _, word := range m.guide("creel rm --conf /etc/hadoop/conf") {
		args = append(args, forMember(word, s, "/creel"))
	}
	s.RM = start(m.t, "creel-"+s.ID, "rm", s.Hadoop.Daemon.Conf.With(short, hadoop.Conf{"creel.rm.proxy.hosts": "*"}), args...)
	m.awaitMembers(t)
}

// toHadoop replaces a member's ResourceManager by Hadoop's, at the same addresses.
func (m *migration) toHadoop(t *testing.T, s *Subcluster) {
	s.RM.Stop()
	m.run(t, "creel rm export", s, "/rmback")
	s.Hadoop.Daemon.Conf["yarn.resourcemanager.zk-state-store.parent-path"] = "/rmback-" + s.ID
	s.Hadoop.Daemon.Conf.Write(t, s.Hadoop.ConfDir)
	s.Hadoop.Restart(t)
	m.awaitMembers(t)
}

// toHadoopsProxies replaces creel's proxy of each node by the AMRMProxy, a node at a time.
func (m *migration) toHadoopsProxies(t *testing.T) {
	for _, s := range m.Subclusters {
		s.Node.Stop()
		s.Proxy.Stop()
		m.restartNode(t, s, "true")
	}
}

// toHadoopsRouter starts Hadoop's Router, and stops creel's.
func (m *migration) toHadoopsRouter(t *testing.T) {
	m.router.Restart(t)
	m.awaitNodes(t, m.router.Process, m.router.Web)
	m.creels.Stop()
}

// A federation of Hadoop's becomes creel's part by part, by the commands of the guide, and Hadoop's again. At each step
// a job of each member runs, submitted through the router before the step, with containers in both members. No job is
// lost, and each has its home and its end at every later step.
func TestHadoopFederationMovesToCreelAndBack(t *testing.T) {
	m := startHadoopFederation(t)
	first, second := m.Subclusters[0], m.Subclusters[1]
	steps := []struct {
		name      string
		change    func(t *testing.T)
		ms        int  // how long each map runs
		restarted bool // the NodeManagers, and with them AMs and containers
	}{
		{"hadoop_alone", func(*testing.T) {}, 1000, false},
		{"creels_router", m.toCreelsRouter, 30000, false},
		{"creels_proxies", m.toCreelsProxies, 5000, true},
		{"first_resourcemanager_is_creels", func(t *testing.T) { m.toCreel(t, first) }, 40000, false},
		{"second_resourcemanager_is_creels", func(t *testing.T) { m.toCreel(t, second) }, 40000, false},
		{"creel_alone", func(*testing.T) {}, 1000, false},
		{"second_resourcemanager_is_hadoops", func(t *testing.T) { m.toHadoop(t, second) }, 40000, false},
		{"first_resourcemanager_is_hadoops", func(t *testing.T) { m.toHadoop(t, first) }, 40000, false},
		{"hadoops_proxies", m.toHadoopsProxies, 5000, true},
		{"hadoops_router", m.toHadoopsRouter, 30000, false},
		{"hadoop_alone_again", func(*testing.T) {}, 1000, false},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) {
			jobs := m.begin(t, step.ms)
			step.change(t)
			m.end(t, jobs, step.restarted)
		}) {
			t.FailNow()
		}
	}
	t.Logf("%d applications: %v", len(m.homes), slices.Sorted(maps.Keys(m.homes)))
}
