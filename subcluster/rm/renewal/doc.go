// SPDX-License-Identifier: Apache-2.0

// Package renewal keeps the delegation tokens of applications valid. A client obtains tokens, such as of HDFS, names
// the ResourceManager as their renewer, and submits them with its application. They end after their first interval, a
// day by default, unless they are renewed.
//
// Book decides, by times that it is given: when a token is renewed (after nine tenths of its time, as in Hadoop), when
// a failed attempt is repeated, and which tokens are cancelled when an application ends. Renewer carries this out.
//
// It promises:
//   - A token is renewed once for all applications that hold it, as long as one of them runs.
//   - It is cancelled after the last of them has ended, and only if each of them asked for that.
//   - A server that does not answer delays no submission. Its tokens are tried again until their applications end.
//   - A token whose server rejects it is not tried again.
//
// The caller owes the tokens of all running applications after a restart: nothing is stored here.
//
// A token that cannot be renewed does not reject its application, unlike in Hadoop: a NameNode that restarts would
// reject all jobs submitted meanwhile. The failure is logged and counted.
//
// Source: org.apache.hadoop.yarn.server.resourcemanager.security.DelegationTokenRenewer.
package renewal
