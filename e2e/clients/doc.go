// SPDX-License-Identifier: Apache-2.0

// Package clients is what users do with a YARN cluster, done by Hadoop's own
// unmodified programs: the yarn command line, REST clients, distributed shell,
// unmanaged AMs, MapReduce with shuffle, Spark in both modes.
//
// The cases know only a [Cluster]: its addresses and what it cannot do.
// So one table proves a Hadoop ResourceManager (the control: what the cases
// themselves are worth), creel's, and a federation:
//
//	clients.Run(t, &clients.Cluster{
//		Conf:  router.Conf(),              // hadoop.Addresses.Conf, and what clients must say besides
//		Web:   router.Web,                 // REST API
//		Nodes: []string{nm1.ID, nm2.ID},   // real NodeManagers of 4096 MB and 8 vcores
//		Logs:  logs,                       // remote-app-log-dir of those nodes
//		Without: map[string]string{"dshell_placement": "what the user is told"},
//	})
//
// Conf is what goes into the configuration directory of every client, and so
// also into what AMs read: behind AM-RM proxies it carries
// yarn.resourcemanager.scheduler.address. The queues must be those of
// hadoop.Queues: root.default with 70%, root.other with 30%.
//
// Without leaves cases out, or says what is told where a feature is not there;
// Only runs a few by name ("mr_pi", "spark_cluster"). Cases clean up after
// themselves and count on nothing but the nodes, so that clients.Run may be
// called again on the same cluster. About 200 s of two idle cores for all.
//
// The control runs Hadoop's own ResourceManager under the table. It proves the
// cases and not creel, so it has a build tag and a stage of ./test of its own:
//
//	./test control
//	go test -tags control ./e2e/clients
package clients
