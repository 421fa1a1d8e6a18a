// SPDX-License-Identifier: Apache-2.0

package subcluster

// RouterHeader is in each request of a router's to a ResourceManager's web address. One of
// ours then lists the unmanaged AMs of proxies that run, or whose logs are not gathered, whatever the filter,
// without counting them in its limit, for the router to join with the application that they belong to; and
// leaves them out of its statistics. By RPC a router asks so by yarnrpc.WithParts.
const RouterHeader = "X-Creel-Router"
