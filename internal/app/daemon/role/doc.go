// SPDX-License-Identifier: Apache-2.0

// Package role makes each of creel's daemons from settings: a router, an AM-RM
// proxy, a ResourceManager, simulated NodeManagers, and the agent of a
// ResourceManager that is not ours.
//
// For each there is a Config with all that it needs, a function that reads it
// from settings (RouterSettings, ProxySettings, …) and one that assembles it
// (NewRouter, NewProxy, …). What is assembled has its ports bound and runs
// nothing: see package daemon. The commands, `creel up`, the demo, the tests and
// `creel config check --role` all go through here, so that what one of them
// accepts the others accept too.
package role
