// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

const weightedManager = "org.apache.hadoop.yarn.server.federation.policies.manager.WeightedLocalityPolicyManager"

// Hadoop's Router and creel's share Hadoop's store in ZooKeeper, over a member that creel's ResourceManager registered
// and one that Hadoop's registered itself, without an agent. Each router serves applications of the other, and follows
// policies that the other's tools wrote.
func TestHadoopsRouterSharesTheStore(t *testing.T) {
	_, zookeeper := hadoop.StartZooKeeper(t)
	startSharing(t, "zk://"+zookeeper, hadoop.Federation(zookeeper), nil).run(t)
}

// sharing is a federation in which Hadoop's Router and ResourceManager use the store of creel's daemons.
type sharing struct {
	*Federation
	shared       hadoop.Conf             // of all of Hadoop's daemons
	login        hadoop.Conf             // of creel's, at the store
	ours, theirs *Subcluster             // with creel's ResourceManager, and with Hadoop's
	own          hadoop.Addresses        // of creel's router
	router       *hadoop.ResourceManager // Hadoop's
	admin        hadoop.Client           // of Hadoop's Router
}

func startSharing(t *testing.T, store string, shared, login hadoop.Conf) *sharing {
	t.Helper()
	f := &Federation{Logs: tempDir(t, "logs"), Store: store}
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"})
	more := hadoop.Conf{"yarn.federation.state-store.heartbeat-interval-secs": "10"}.With(login)
	s := &sharing{Federation: f, shared: shared, login: login, ours: f.StartSubcluster(t, 1, more)}
	theirs := hadoop.StartRM(t, hadoop.RM{Name: "hadoop-rm", Conf: shared.With(hadoop.Conf{
		"yarn.resourcemanager.cluster-id": "sc-hadoop", "yarn.resourcemanager.epoch": "2000",
		"yarn.resourcemanager.recovery.enabled":   "true",
		"yarn.resourcemanager.store.class":        "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
		"yarn.resourcemanager.fs.state-store.uri": "file://" + tempDir(t, "rmstate"),
	})})
	theirs.WaitLine(t, "Successfully registered for federation subcluster")
	s.theirs = &Subcluster{ID: "sc-hadoop", Addresses: theirs.Addresses, address: "127.0.0.3"}
	s.theirs.Proxy = f.StartProxy(t, "sc-hadoop", s.theirs.address, more)
	f.Subclusters = []*Subcluster{s.ours, s.theirs}
	for _, s := range f.Subclusters {
		s.Node = f.StartNode(t, "nm-"+s.ID, s.address, s.Addresses)
	}
	f.startRouterOfHadoopsConfiguration(t, shared)
	s.own = f.RouterAddresses[0]
	s.router = hadoop.StartRouter(t, hadoop.Router{Conf: shared.With(hadoop.RouterPipelines())})
	s.admin = hadoop.Client{Conf: s.router.ClientConf().With(shared, hadoop.Conf{
		"yarn.router.rmadmin.address": s.router.Admin, "yarn.federation.policy-manager": weightedManager,
	})}
	return s
}

func (s *sharing) run(t *testing.T) {
	t.Run("members_of_both", s.membersOfBoth)
	t.Run("policy_of_hadoops_router", s.policyOfHadoopsRouter)
	t.Run("policy_of_creel", s.policyOfCreel)
}

func (s *sharing) membersOfBoth(t *testing.T) {
	AwaitActive(t, s.own.Web, 2)
	s.Await(t, 2)
	s.router.Await(t, "both members' nodes through Hadoop's Router", func() bool {
		var m struct {
			ClusterMetrics struct{ ActiveNodes int }
		}
		_, err := Call(t, http.MethodGet, s.router.Web, "/ws/v1/cluster/metrics", nil, &m)
		return err == nil && m.ClusterMetrics.ActiveNodes == 2
	})
}

func (s *sharing) policyOfHadoopsRouter(t *testing.T) {
	out := s.admin.Run(t, hadoop.RouterCLI, "-policy", "-s", "root.default;sc-hadoop:1;sc-hadoop:0.5,sc-1:0.5;0.0")
	out.OK(t)
	policy := func() string { return s.Creel(t, "policy", "list", "--server", s.own.Web) }
	if process.Poll(nil, func() bool { return strings.Contains(policy(), "hadoop") }) != nil {
		t.Fatalf("creel's router has no policy of Hadoop's:\n%s\n%s", policy(), out.All)
	}
	s.home(t, s.theirs)
	s.jobAtHome(t, s.own, s.theirs)
	s.jobAtHome(t, s.router.Addresses, s.theirs)
}

// setPolicy writes a policy past the routers, and waits until Hadoop's Router has the weight.
func (s *sharing) setPolicy(t *testing.T, document, weight string) {
	t.Helper()
	set := []string{"policy", "set", "root.default", document, "--store", s.Store}
	for key, value := range s.login {
		set = append(set, "-D", key+"="+value)
	}
	s.Creel(t, set...)
	s.router.Await(t, "creel's policy at Hadoop's Router", func() bool {
		out := s.admin.Run(t, hadoop.RouterCLI, "-policy", "-l", "--pageSize", "20", "--currentPage", "1", "--queue", "root.default")
		return strings.Contains(out.All, weight)
	})
}

func (s *sharing) policyOfCreel(t *testing.T) {
	document := fmt.Sprintf(`{"type":%q,"params":{"routerPolicyWeights":{"sc-1":1},"amrmPolicyWeights":{"sc-1":1},`+
		`"headroomAlpha":"0.0"}}`, weightedManager)
	s.setPolicy(t, document, "sc-1:1.0")
	s.home(t, s.ours)
	s.jobAtHome(t, s.own, s.ours)
	s.jobAtHome(t, s.router.Addresses, s.ours)
}

// home submits through creel's router until the policy leads to the home, and expects that both routers report it.
// Hadoop's Router fails at POST /ws/v1/cluster/apps/new-application.
func (s *sharing) home(t *testing.T, want *Subcluster) {
	t.Helper()
	id, own := "", s.own.Web
	if process.Poll(nil, func() bool {
		var err error
		if id, err = NewApplication(t, own); err == nil {
			err = Submit(t, own, id, "root.default")
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Home(t, id) == want {
			return true
		}
		KillApp(t, own, id) // the router has not read the policy yet
		return false
	}) != nil {
		t.Fatalf("no application's home is %s", want.ID)
	}
	for _, router := range []string{own, s.router.Web} {
		AwaitState(t, router, id, "ACCEPTED")
	}
	for _, member := range s.Subclusters {
		_, code, err := Report(t, member.Addresses.Web, id)
		if found := code == http.StatusOK; found != (member == want) {
			t.Errorf("%s of home %s is at %s: %v (%v)", id, want.ID, member.ID, found, err)
		}
	}
	KillApp(t, own, id)
	AwaitState(t, s.router.Web, id, "KILLED")
}

// startRouterOfHadoopsConfiguration starts a router whose configuration names the store by Hadoop's keys alone.
func (f *Federation) startRouterOfHadoopsConfiguration(t *testing.T, shared hadoop.Conf) {
	t.Helper()
	const host = "127.0.0.1"
	a := hadoop.Addresses{
		Client: process.FreeAddress(t, host), Admin: process.FreeAddress(t, host), Web: process.FreeAddress(t, host),
	}
	conf := f.common(t, shared).With(hadoop.Conf{
		"yarn.router.clientrm.address": a.Client, "yarn.router.rmadmin.address": a.Admin, "yarn.router.webapp.address": a.Web,
	})
	delete(conf, "creel.store.url")
	f.Routers = append(f.Routers, start(t, "router-1", "router", conf))
	f.RouterAddresses = append(f.RouterAddresses, a)
}

// jobAtHome runs a MapReduce job through a router, Hadoop's or creel's, and expects its home.
func (f *Federation) jobAtHome(t *testing.T, router hadoop.Addresses, want *Subcluster) {
	t.Helper()
	of := &Federation{RouterAddresses: []hadoop.Addresses{router}, proxyPort: f.proxyPort}
	client := hadoop.Client{Conf: of.ClientConf(0).With(hadoop.Conf{"mapreduce.job.queuename": "root.default"})}.Setup(t)
	out := client.Run(t, hadoop.Examples, "pi", "2", "10")
	out.OK(t)
	id := strings.Replace(regexp.MustCompile(`job_\d+_\d+`).FindString(out.All), "job", "application", 1)
	if at := f.Home(t, id); at != want {
		t.Errorf("%s lives at %s, want %s", id, at.ID, want.ID)
	}
	AwaitState(t, f.RouterAddresses[0].Web, id, "FINISHED")
}
