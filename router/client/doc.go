// SPDX-License-Identifier: Apache-2.0

// Package client has the calls that a router makes to members for itself: it checks for an application, disowns it,
// moves it, carries out recorded changes, lists applications for the router's loops, and tries members that join. Calls
// of users are forwarded by packages rpc and rest.
//
// A Member is one ResourceManager. Of returns creel's or Hadoop's, by the member's record: creel's has calls that
// Hadoop's lacks, as further fields of Hadoop's messages. Each method and function calls one member, several times only
// where its comment names the further calls. Errors are those of package remote. Callers bound the time by the context,
// and repeat.
package client
