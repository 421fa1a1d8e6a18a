// SPDX-License-Identifier: Apache-2.0

// Package wire proves creel's end of Hadoop RPC and of YARN's protocols against Apache's end. It tests Hadoop's
// YarnClient against creel's server, and creel's client against a real ResourceManager and a real NodeManager. It also
// compares the server's speed with Hadoop's. It has only tests.
package wire
