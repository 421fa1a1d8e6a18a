// SPDX-License-Identifier: Apache-2.0

// Package remote calls the ResourceManagers of the federation, creel's or Hadoop's: by Hadoop RPC, by REST, with
// deadlines, breakers and the choice between the hosts of an HA pair.
//
// A Pool holds one Member for each subcluster; a Member is safe for any number of callers and shares its connections
// among all users. Each kind of call to each member has a circuit breaker of its own, so that a member whose lists
// time out still accepts submissions. Only silence counts as a failure: no connection, or no answer within the
// deadline. An exception is an answer, and a caller that went away proves nothing.
//
// Errors: a *hrpc.RemoteError when the member answered one; else an error of kind creel.ErrUnavailable, whose Sent
// reports whether the call may have reached the member.
//
// An Agent keeps a membership alive: it queries a ResourceManager's health and sends its heartbeats.
package remote
