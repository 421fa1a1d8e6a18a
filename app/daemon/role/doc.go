// SPDX-License-Identifier: Apache-2.0

// Package role makes each of creel's daemons from settings: a router, an AM-RM proxy, a ResourceManager, simulated
// NodeManagers, and the agent of a Hadoop ResourceManager.
//
// Each has a Config, a function that reads it from settings (RouterSettings, ProxySettings, …), and a function that
// assembles the daemon (NewRouter, NewProxy, …). An assembled daemon has bound its ports and runs nothing: see
// package daemon. The commands, `creel up`, the demo, the tests and `creel config check --role` all use this package,
// so that they accept the same configurations.
package role
