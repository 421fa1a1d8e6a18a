// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"testing"

	"github.com/creelrm/creel/e2e/clients"
)

// Spark's AM runs behind the AM-RM proxy, with executors in two subclusters. It is notified of each executor before its
// preemption, in either subcluster.
func TestSparkIsPreemptedBehindProxy(t *testing.T) {
	f := Start(t, Options{Conf: clients.Preemption()})
	c := &clients.Cluster{Conf: f.ClientConf(0), Web: f.RouterAddresses[0].Web, Nodes: f.Nodes(), Logs: f.Logs}
	clients.SparkGivesWay(t, c, "cluster")
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
