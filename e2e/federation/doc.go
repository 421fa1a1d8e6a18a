// SPDX-License-Identifier: Apache-2.0

// Package federation proves creel's federation with unmodified Hadoop: two of creel's ResourceManagers, each over a
// real NodeManager, two routers, an AM-RM proxy beside each node, and a real Redis, all as processes of the creel
// binary; Hadoop's own clients and AMs in front.
//
//	TestClients                             client cases of package clients, through routers over creel's and
//	                                        Hadoop's members, also while members die and drain; all with CREEL_CASES=all
//	TestFaults                              router, proxies, home, second killed while Hadoop works
//	TestWaitingMapReduceLeavesDrainedMember a waiting job leaves a drained member; its client does not notice
//	TestMixed                               a real Hadoop ResourceManager as a member, by creel agent
//	TestRouterKilledBetweenAnyTwoSteps      one application, one home; no Java, two seconds
//	BenchmarkProxy                          cost of an allocate through the proxy
//
// AMs find the proxy beside them by one line of their configuration, the same on every node:
//
//	yarn.resourcemanager.scheduler.address = ${env.NM_HOST:-127.0.0.1}:PORT
//
// Each node has a loopback address of its own, so that one port serves all, and a third proxy on 127.0.0.1 serves AMs
// that no node started.
package federation
