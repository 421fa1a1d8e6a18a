// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

// The client cases by Kerberos that work through Hadoop's Router. Behind it are two ResourceManagers and the proxies of creel.
func TestClientCasesThroughHadoopsSecureRouter(t *testing.T) {
	_, zookeeper := hadoop.StartZooKeeper(t)
	f := startMembers(t, "privacy", 2, placing, hadoop.Conf{
		"creel.store.url": "zk://" + zookeeper,
		"yarn.federation.state-store.heartbeat-interval-secs": "10",
	})
	for i := range f.Subclusters {
		f.startNode(t, i)
	}
	f.awaitNodes(t, f.client(t, f.cache))
	login := hadoop.Conf{}
	for _, key := range []string{
		"yarn.router.kerberos.principal", "yarn.router.keytab.file", "hadoop.http.authentication.type",
		"hadoop.http.authentication.kerberos.principal", "hadoop.http.authentication.kerberos.keytab",
	} {
		login[key] = f.daemons[key]
	}
	router := hadoop.StartRouter(t, hadoop.Router{Conf: hadoop.Federation(zookeeper).With(
		hadoop.RouterPipelines(), f.conf, login, hadoopsWebLogin(t))})
	f.RouterAddresses = append(f.RouterAddresses, router.Addresses)
	clients.Run(t, &clients.Cluster{
		Conf: f.clientConfOf(1), Web: router.Web, Nodes: f.Nodes(), OneNode: true, Login: f.login(t, f.user, f.keytab),
		// Hadoop's Router asks no member's web port by Kerberos, which the cases with AMs' pages need. It adds up the
		// capacities of queues, and words errors of members in its own way, which ends the distributed shell.
		Only: []string{
			"node_list", "node_status", "node_details", "queue_list", "cluster_labels", "cluster_attrs", "nodeattributes",
			"rmadmin_refresh", "rmadmin_groups", "top", "mr_sleep", "mr_fail", "spark_client", "spark_cluster", "spark4_client",
			"spark4_cluster",
		},
	})
}
