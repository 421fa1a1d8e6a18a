// SPDX-License-Identifier: Apache-2.0

// Package remote calls the ResourceManagers of the federation, creel's or Hadoop's, by Hadoop RPC and REST. It has
// deadlines, breakers and the choice between the hosts of an HA pair.
//
// A Pool has one Member for each subcluster; any number of callers may use a Member, and it shares its connections
// among all users. Each kind of call to each member has a separate circuit breaker, so that a member whose lists time
// out still accepts submissions. Only silence counts as a failure: no connection, or no answer within the deadline.
// An exception is an answer, and a caller that cancels proves nothing.
//
// Errors: a *hrpc.RemoteError if the member answered with one; else an error of kind creel.ErrUnavailable, whose Sent
// reports whether the call may have reached the member.
//
// An Agent keeps a membership alive: it checks a ResourceManager's health and sends its heartbeats.
package remote
