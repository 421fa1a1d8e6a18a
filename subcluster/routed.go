// SPDX-License-Identifier: Apache-2.0

package subcluster

// RouterHeader is set in each request of a router to a ResourceManager's web address. Creel's ResourceManager then
// also lists proxies' unmanaged AMs that run, or whose logs are not aggregated yet, whatever the filter. It does not
// count them in its limit; the router joins them with their applications. It also leaves them out of its statistics.
// By RPC a router requests the same with yarnrpc.WithParts.
const RouterHeader = "X-Creel-Router"
