// SPDX-License-Identifier: Apache-2.0

// Package hadoop runs unmodified Apache Hadoop beside creel. It starts real ResourceManagers, NodeManagers, Routers and
// a ZooKeeper, the yarn command-line classes, MapReduce and Spark. It also runs creel's small Java test programs on
// Hadoop's client libraries.
//
// Maven fetches Hadoop 3.4.2 and the 3.3.6 client by the two poms here, once. The cache is outside the tree
// ($CREEL_CACHE, else the user's cache directory). A JDK 17 and Maven must be installed; without them a test fails and
// names the missing program. There is no Hadoop installation: one flat class path serves every daemon, client and
// container.
//
//	rm := hadoop.StartRM(t, hadoop.RM{})
//	hadoop.StartNM(t, hadoop.NM{RM: rm.Addresses})
//	r := hadoop.Client{Conf: rm.ClientConf()}.Run(t, hadoop.NodeCLI, "-list")
//
// Heaps are small: an RM and two NodeManagers take about 750 MB. So tests that use this package run one package at a
// time (go test -p 1).
package hadoop
