// SPDX-License-Identifier: Apache-2.0

package subcluster

// RouterHeader is in each request of a router to a ResourceManager's web address. Creel's ResourceManager then lists
// the unmanaged AMs of proxies that run, or whose logs are not gathered, whatever the filter, without counting them
// in its limit; the router joins them with their applications. It also leaves them out of its statistics. By RPC a
// router asks for that with yarnrpc.WithParts.
const RouterHeader = "X-Creel-Router"
