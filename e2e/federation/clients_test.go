// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

// A row of the table: a federation and its users' Hadoop.
type row struct {
	federation string
	version    hadoop.Version // of the clients, their AMs and tasks; default 3.4.2
	without    map[string]string
	// usual names, for each disturbance, the cases of a run without CREEL_CASES=all.
	usual map[string][]string
}

// federations lists federations of two members behind a router.
var federations = []struct {
	name, what string
	start      func(*testing.T) *Federation
}{
	{"creel", "two ResourceManagers of creel's", func(t *testing.T) *Federation { return Start(t, Options{Conf: goOn}) }},
	{"mixed", "one of creel's and one of Hadoop's, homes in both", func(t *testing.T) *Federation {
		return startMembers(t, "creel", "hadoop")
	}},
	{"hadoop", "two of Hadoop's", func(t *testing.T) *Federation { return startMembers(t, "hadoop", "hadoop") }},
}

// goOn makes routers return lists without an absent member. Hadoop's default is an error. With it no distributed shell
// starts during an absence, because its client first requests all nodes.
var goOn = hadoop.Conf{"yarn.router.interceptor.allow-partial-result.enable": "true"}

// usual are the cases that cover most of a federation. Each of the others differs from one of these only in the
// behaviour of the client or the ResourceManager, which e2e/rm tests without a router.
var usual = []string{
	"node_list", "app_list", "rest_get", "rest_client", "dshell_keep", "app_life", "app_admin", "signal", "logs", "uam",
	"mr_pi", "spark_cluster",
}

var rows = []row{
	{
		federation: "creel",
		without:    map[string]string{"dshell_placement": "placement-constraints.handler is disabled"},
		usual: map[string][]string{
			"clean":   usual,
			"killed":  {"mr_sleep_red"},
			"drained": {"dshell_8"},
		},
	},
	{
		federation: "creel",
		version:    hadoop.V336,
		without: map[string]string{
			"dshell_placement": "placement-constraints.handler is disabled",
			"queue_list":       "`yarn queue` of 3.3.6 has no -list",
			"rest_get":         ownClient, "rest_client": ownClient, "spark_client": ownClient, "spark_cluster": ownClient,
			"spark4_client": ownClient, "spark4_cluster": ownClient, "tez_wordcount": ownClient,
			"flink_application": ownClient, "flink_session": ownClient, "skein": ownClient,
		},
		usual: map[string][]string{"clean": {"node_list", "queue_status", "app_list", "mr_pi"}},
	},
	{
		federation: "mixed",
		usual:      map[string][]string{"clean": {"app_life", "mr_pi", "flink_session"}},
	},
	{
		federation: "hadoop",
		usual:      map[string][]string{"clean": {"rest_get", "spark4_client"}},
	},
}

const ownClient = "not a client of Hadoop's, or one that brings its own"

func (r *row) name() string {
	if r.version == "" {
		return r.federation
	}
	return r.federation + ", " + string(r.version)
}

// Users do the work of one YARN cluster on two clusters behind a router, with AMs through the proxies. First nothing
// disturbs them. Then members are killed and restarted, and then members are drained. Without settings it runs the
// cases in rows' names; CREEL_CASES=all (./test table) runs all.
func TestClients(t *testing.T) {
	whole := false
	switch which := os.Getenv("CREEL_CASES"); which {
	case "all":
		whole = true
	case "":
	default:
		t.Fatalf("CREEL_CASES=%s: give all, or nothing for the usual cases", which)
	}
	for _, kind := range federations {
		t.Run(kind.name, func(t *testing.T) {
			f := kind.start(t)
			if kind.name == "creel" {
				t.Run("routeradmin", func(t *testing.T) { routerAdmin(t, f) })
			}
			for _, r := range rows {
				if r.federation != kind.name {
					continue
				}
				for _, d := range disturbances {
					if !whole && r.usual[d.name] == nil {
						continue
					}
					t.Run(strings.TrimPrefix(string(r.version)+"/"+d.name, "/"), func(t *testing.T) {
						c := &clients.Cluster{Conf: f.ClientConf(0), Web: f.RouterAddresses[0].Web, Nodes: f.Nodes(),
							Logs: f.Logs, OneNode: true, Version: r.version, Without: r.without}
						if !whole {
							c.Only = r.usual[d.name]
						}
						f.disturbed(t, c, d)
					})
				}
			}
			if !t.Failed() {
				f.everywhere(t, whole)
			}
		})
	}
}

// everywhere fails unless one application had containers in both members. If all cases have run, each member must also
// have been the home of some.
func (f *Federation) everywhere(t *testing.T, whole bool) {
	both, homes := 0, map[string]int{}
	for app, where := range f.ran() {
		home := f.Home(t, app)
		t.Logf("%s, at home in %s, ran in %v", app, home.ID, where)
		homes[home.ID]++
		if len(where) == len(f.Subclusters) {
			both++
		}
	}
	if both == 0 {
		t.Error("no application had containers in both subclusters")
	}
	if whole && len(homes) < len(f.Subclusters) {
		t.Errorf("homes are %v: one member has none", homes)
	}
}

var started = regexp.MustCompile(`Start request for container_e\d+_(\d+_\d+)_`)

// ran returns the subclusters that started each application's containers, by the nodes' own logs.
func (f *Federation) ran() map[string]map[string]int {
	out := map[string]map[string]int{}
	for _, s := range f.Subclusters {
		for _, m := range started.FindAllStringSubmatch(s.Node.Output(), -1) {
			app := "application_" + m[1]
			if out[app] == nil {
				out[app] = map[string]int{}
			}
			out[app][s.ID]++
		}
	}
	return out
}

// startMembers starts a federation whose members run creel's or Hadoop's ResourceManagers. Homes are drawn evenly. Each
// member gets half of an application's asks.
func startMembers(t *testing.T, whose ...string) *Federation {
	t.Helper()
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"})
	f.Gateway = f.StartProxy(t, "gateway", "127.0.0.1", nil)
	for i, w := range whose {
		s := (*Subcluster)(nil)
		if w == "hadoop" {
			s = f.StartHadoop(t, i+1)
			s.Proxy = f.StartProxy(t, s.ID, s.address, nil)
		} else {
			s = f.StartSubcluster(t, i+1, hadoop.Conf{
				"yarn.resourcemanager.placement-constraints.handler": "placement-processor", // as Hadoop's have it here
			})
		}
		s.Node = f.StartNode(t, "nm-"+s.ID, s.address, s.Addresses)
		f.Subclusters = append(f.Subclusters, s)
	}
	f.Creel(t, "policy", "set", "root", halves, "--store", f.Store)
	f.StartRouter(t, 1, goOn)
	f.Await(t, len(whose))
	AwaitActive(t, f.RouterAddresses[0].Web, len(whose))
	return f
}

const halves = `{"home":{"policy":"uniform"},` +
	`"split":{"policy":"locality","weights":{"sc-1":1,"sc-2":1},"headroomAlpha":0}}`
