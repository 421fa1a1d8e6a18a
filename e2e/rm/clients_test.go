// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

func TestMain(m *testing.M) { Main(m) }

// cluster is our ResourceManager with two real NodeManagers.
func cluster(t *testing.T, conf hadoop.Conf) (*Creel, *clients.Cluster) {
	t.Helper()
	rm := Start(t, Options{Conf: conf})
	c := &clients.Cluster{Conf: rm.Addresses.Conf(), Web: rm.Web, Logs: t.TempDir()}
	for _, name := range []string{"nm1", "nm2"} {
		nm := hadoop.StartNM(t, hadoop.NM{Name: name, RM: rm.Addresses, Conf: hadoop.Conf{
			"yarn.nodemanager.remote-app-log-dir":                                  c.Logs,
			"yarn.nodemanager.node-attributes.provider":                            "config",
			"yarn.nodemanager.node-attributes.provider.configured-node-attributes": "runtime,STRING,java-17",
		}})
		c.Nodes = append(c.Nodes, nm.ID)
	}
	return rm, c
}

// All client cases run with creel's ResourceManager, then with clients of the previous Hadoop release.
func TestClientCasesOnCreel(t *testing.T) {
	_, c := cluster(t, hadoop.Conf{"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"})
	// As on a ResourceManager without placement constraints.
	c.Without = map[string]string{"dshell_placement": "yarn.resourcemanager.placement-constraints.handler"}
	clients.Run(t, c)
	t.Run("promoted", func(t *testing.T) { clients.PromotesShell(t, c) })
	t.Run("3.3.6", func(t *testing.T) {
		older := *c
		older.Version, older.Without = hadoop.V336, nil
		older.Only = []string{
			"node_list",
			"node_status",
			"node_details",
			"queue_status",
			"app_list",
			"cluster_labels",
			"rmadmin_refresh",
			"rmadmin_groups",
			"top",
			"mr_pi",
		}
		clients.Run(t, &older)
	})
}
