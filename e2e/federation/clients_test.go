// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"os"
	"regexp"
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

// usual are the cases that say the most about a federation. The others differ
// from one of these in what the client or the ResourceManager does, which
// e2e/rm has without a router in between; CREEL_CASES=all runs them here too.
var usual = []string{
	"node_list", "node_status", "queue_status", "app_list", "rmadmin_refresh", "rest_get", "rest_client",
	"dshell_8", "dshell_keep", "dshell_placement", "app_life", "app_admin", "signal", "logs", "uam", "uam_kill",
	"mr_pi", "mr_kill", "spark_client", "spark_cluster",
}

// What a user does with one YARN cluster, done with two behind a router,
// AMs through the proxies.
func TestClients(t *testing.T) {
	f := Start(t, Options{})
	c := &clients.Cluster{Conf: f.ClientConf(0), Web: f.RouterAddresses[0].Web, Nodes: f.Nodes(), Logs: f.Logs,
		Without: map[string]string{"dshell_placement": "placement-constraints.handler is disabled"}}
	switch which := os.Getenv("CREEL_CASES"); which {
	case "all":
	case "":
		c.Only = usual
	default:
		t.Fatalf("CREEL_CASES=%s: give all, or nothing for the usual cases", which)
	}
	clients.Run(t, c)
	t.Run("3.3.6", func(t *testing.T) { // users whose Hadoop is of the release before
		older := *c
		older.Version, older.Without = hadoop.V336, nil
		older.Only = []string{"node_list", "queue_status", "app_list", "mr_pi"}
		clients.Run(t, &older)
	})
	t.Run("routeradmin", func(t *testing.T) { routerAdmin(t, f) })
	if t.Failed() {
		return
	}
	everywhere := 0
	for app, where := range f.ran() {
		t.Logf("%s ran in %v", app, where)
		if len(where) == len(f.Subclusters) {
			everywhere++
		}
	}
	if everywhere == 0 {
		t.Error("no application had containers in both subclusters")
	}
}

var started = regexp.MustCompile(`Start request for container_e\d+_(\d+_\d+)_`)

// ran tells in which subclusters each application's containers were started,
// as the nodes' own logs say.
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
