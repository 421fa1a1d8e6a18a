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
	shared := hadoop.Federation(zookeeper)
	f := &Federation{Logs: tempDir(t, "logs"), Store: "zk://" + zookeeper}
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"})
	interval := hadoop.Conf{"yarn.federation.state-store.heartbeat-interval-secs": "10"}
	ours := f.StartSubcluster(t, 1, interval)
	theirs := hadoop.StartRM(t, hadoop.RM{Name: "hadoop-rm", Conf: shared.With(hadoop.Conf{
		"yarn.resourcemanager.cluster-id": "sc-hadoop", "yarn.resourcemanager.epoch": "2000",
		"yarn.resourcemanager.recovery.enabled":   "true",
		"yarn.resourcemanager.store.class":        "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
		"yarn.resourcemanager.fs.state-store.uri": "file://" + tempDir(t, "rmstate"),
	})})
	theirs.WaitLine(t, "Successfully registered for federation subcluster")
	other := &Subcluster{ID: "sc-hadoop", Addresses: theirs.Addresses, address: "127.0.0.3"}
	other.Proxy = f.StartProxy(t, "sc-hadoop", other.address, interval)
	f.Subclusters = []*Subcluster{ours, other}
	for _, s := range f.Subclusters {
		s.Node = f.StartNode(t, "nm-"+s.ID, s.address, s.Addresses)
	}
	f.startRouterOfHadoopsConfiguration(t, shared)
	own := f.RouterAddresses[0]
	router := hadoop.StartRouter(t, hadoop.Router{Conf: shared.With(hadoop.RouterPipelines())})

	t.Run("members_of_both", func(t *testing.T) {
		AwaitActive(t, own.Web, 2)
		f.Await(t, 2)
		router.Await(t, "both members' nodes through Hadoop's Router", func() bool {
			var m struct {
				ClusterMetrics struct{ ActiveNodes int }
			}
			_, err := Call(t, http.MethodGet, router.Web, "/ws/v1/cluster/metrics", nil, &m)
			return err == nil && m.ClusterMetrics.ActiveNodes == 2
		})
	})

	admin := hadoop.Client{Conf: router.ClientConf().With(shared, hadoop.Conf{
		"yarn.router.rmadmin.address": router.Admin, "yarn.federation.policy-manager": weightedManager,
	})}
	// home submits through creel's router until the policy leads to the home, and expects that both routers report it.
	// Hadoop's Router fails at POST /ws/v1/cluster/apps/new-application.
	home := func(t *testing.T, want *Subcluster) {
		t.Helper()
		id := ""
		if process.Poll(nil, func() bool {
			var err error
			if id, err = NewApplication(t, own.Web); err == nil {
				err = Submit(t, own.Web, id, "root.default")
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Home(t, id) == want {
				return true
			}
			KillApp(t, own.Web, id) // the router has not read the policy yet
			return false
		}) != nil {
			t.Fatalf("no application's home is %s", want.ID)
		}
		for _, router := range []string{own.Web, router.Web} {
			AwaitState(t, router, id, "ACCEPTED")
		}
		for _, s := range f.Subclusters {
			_, code, err := Report(t, s.Addresses.Web, id)
			if found := code == http.StatusOK; found != (s == want) {
				t.Errorf("%s of home %s is at %s: %v (%v)", id, want.ID, s.ID, found, err)
			}
		}
		KillApp(t, own.Web, id)
		AwaitState(t, router.Web, id, "KILLED")
	}
	t.Run("policy_of_hadoops_router", func(t *testing.T) {
		out := admin.Run(t, hadoop.RouterCLI, "-policy", "-s", "root.default;sc-hadoop:1;sc-hadoop:0.5,sc-1:0.5;0.0")
		out.OK(t)
		policy := func() string { return f.Creel(t, "policy", "list", "--server", own.Web) }
		if process.Poll(nil, func() bool { return strings.Contains(policy(), "hadoop") }) != nil {
			t.Fatalf("creel's router has no policy of Hadoop's:\n%s\n%s", policy(), out.All)
		}
		home(t, other)
		f.jobAtHome(t, own, other)
		f.jobAtHome(t, router.Addresses, other)
	})
	t.Run("policy_of_creel", func(t *testing.T) {
		document := fmt.Sprintf(`{"type":%q,"params":{"routerPolicyWeights":{"sc-1":1},"amrmPolicyWeights":{"sc-1":1},`+
			`"headroomAlpha":"0.0"}}`, weightedManager)
		f.Creel(t, "policy", "set", "root.default", document, "--store", f.Store)
		router.Await(t, "creel's policy at Hadoop's Router", func() bool {
			out := admin.Run(t, hadoop.RouterCLI, "-policy", "-l", "--pageSize", "20", "--currentPage", "1", "--queue", "root.default")
			return strings.Contains(out.All, "sc-1:1.0") && !strings.Contains(out.All, "sc-hadoop:1.0")
		})
		home(t, ours)
		f.jobAtHome(t, own, ours)
		f.jobAtHome(t, router.Addresses, ours)
	})
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
