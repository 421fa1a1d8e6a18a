// SPDX-License-Identifier: Apache-2.0

// Package clients is what users do with a YARN cluster, done by Hadoop's own
// unmodified programs: the yarn command line, REST clients, distributed shell,
// unmanaged masters, MapReduce with shuffle, Spark in both modes.
//
// The cases know only a Cluster: where its doors are and what it cannot do. So
// one table proves a Hadoop ResourceManager (the baseline: what the cases
// themselves are worth), creel's, and a federation.
package clients
