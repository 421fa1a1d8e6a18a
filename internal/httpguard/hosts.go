// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// KnownHosts rejects requests that arrive on the loopback interface with a foreign Host header. It prevents DNS
// rebinding: a page of another site resolves its name to 127.0.0.1 and reads creel's responses in its visitor's
// browser. Addresses, localhost and the given names pass. "*" accepts every name, for a reverse proxy on the same
// machine that forwards its clients' Host.
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
