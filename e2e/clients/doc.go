// SPDX-License-Identifier: Apache-2.0

// Package clients runs the work of YARN users with Hadoop's own unmodified programs. It covers the yarn command line,
// REST clients, distributed shell, unmanaged AMs, MapReduce with shuffle, and Spark in both modes.
//
// The cases use only a [Cluster]: its addresses and its missing features. So one table proves three systems: a Hadoop
// ResourceManager (the control, which validates the cases), creel's, and a federation:
//
//	clients.Run(t, &clients.Cluster{
//		Conf:  router.Conf(),              // hadoop.Addresses.Conf, and further client settings
//		Web:   router.Web,                 // REST API
//		Nodes: []string{nm1.ID, nm2.ID},   // real NodeManagers of 4096 MB and 8 vcores
//		Logs:  logs,                       // remote-app-log-dir of those nodes
//		Without: map[string]string{"dshell_placement": "message to the user"},
//	})
//
// Conf is part of the configuration directory of every client, which AMs read too. Behind AM-RM proxies it contains
// yarn.resourcemanager.scheduler.address. The queues must be the same as in hadoop.Queues: root.default with 70%,
// root.other with 30%.
//
// Login, for a cluster with Kerberos, is the ticket cache and the keytab by which the clients log in.
//
// Without skips cases, or names the message shown if a feature is missing. Only runs a few by name ("mr_pi",
// "spark_cluster"). Cases clean up after themselves and depend only on the nodes, so clients.Run may be called again on
// the same cluster. All take about 200 s of two idle cores.
//
// The control runs Hadoop's own ResourceManager under the table. It proves the cases and not creel, so it has a build
// tag and a stage of ./test of its own:
//
//	./test control
//	go test -tags control ./e2e/clients
package clients
