// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// KnownHosts refuses calls that came over the loopback interface and name a
// host that is none of ours: a page of another site has its name resolve to
// 127.0.0.1 and reads what we answer to its visitor's browser (DNS rebinding).
// Addresses, localhost and the names given pass; "*" among them lets all pass,
// as a reverse proxy on the same machine needs that keeps its clients' Host.
func KnownHosts(names []string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if slices.Contains(names, "*") {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
			if ok && local.IP.IsLoopback() && !knownHost(r.Host, names) {
				http.Error(w, "this server is not called "+r.Host+
					"; if it is, name it in creel.http.allowed-hosts", http.StatusMisdirectedRequest)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func knownHost(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}
