// SPDX-License-Identifier: Apache-2.0

// Package renewal keeps the delegation tokens of applications valid. A client obtains tokens, such as of HDFS, names
// the ResourceManager as their renewer, and submits them with its application. They end after their first interval, a
// day by default, unless they are renewed.
//
// Book decides, by times that it is given: when a token is renewed (after nine tenths of its time, as in Hadoop), when
// another one replaces it, when a failed attempt is repeated, and which tokens are cancelled when an application ends.
// Renewer carries this out.
//
// A token has a maximum lifetime, a week by default. With yarn.resourcemanager.proxy-user-privileges.enabled another
// one of HDFS replaces it: the ResourceManager obtains it as proxy user of the application's user. NodeManagers get it
// with heartbeats, and use it to localise files and to upload logs.
//
// It promises:
//   - A token is renewed once for all applications that hold it, as long as one of them runs.
//   - A token is replaced before its maximum lifetime ends, or when its server rejects it: for each user on its own, so
//     that no user gets a token of another one.
//   - A node gets the tokens of all applications that have a replaced one, when it has not the newest ones. It needs
//     those of an application before it runs the first container of it.
//   - Secrets in an application's credentials are not sent to nodes.
//   - It is cancelled after the last of them has ended, and only if each of them asked for that.
//   - A server that does not answer delays no submission. Its tokens are tried again until their applications end.
//   - With log aggregation it is cancelled after a delay, which nodes extend while they upload.
//   - A token whose server rejects it is not tried again.
//
// The caller owes the tokens of all running applications after a restart: nothing is stored here. A token that was
// obtained before the restart ends after its interval. Its application's first token is rejected, so it gets another.
//
// A token that cannot be renewed does not reject its application, unlike in Hadoop: a NameNode that restarts would
// reject all jobs submitted meanwhile. The failure is logged and counted.
//
// Source: org.apache.hadoop.yarn.server.resourcemanager.security.DelegationTokenRenewer.
package renewal
