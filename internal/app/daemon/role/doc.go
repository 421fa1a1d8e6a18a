// SPDX-License-Identifier: Apache-2.0

// Package role makes each of creel's daemons from settings: a router, an AM-RM proxy, a ResourceManager, simulated
// NodeManagers, and the agent of a Hadoop ResourceManager.
//
// For each there is a Config with everything it needs, a function that reads it from settings (RouterSettings,
// ProxySettings, …) and one that assembles the daemon (NewRouter, NewProxy, …). An assembled daemon has its ports
// bound and runs nothing: see package daemon. The commands, `creel up`, the demo, the tests and `creel config check
// --role` all use this package, so that they accept the same configurations.
package role
