// SPDX-License-Identifier: Apache-2.0

package httpguard

import "net/http"

// crossOrigin decides by Sec-Fetch-Site, otherwise by Origin and Host. Programs other than browsers send neither, and
// pass.
var crossOrigin = http.NewCrossOriginProtection()

// FromOtherSite reports whether a page of another site sent a request from its visitor's browser, by any method.
// Handlers that change something by GET, like Hadoop's /logLevel, call it.
func FromOtherSite(r *http.Request) bool {
	asWrite := *r
	asWrite.Method = http.MethodPost
	return crossOrigin.Check(&asWrite) != nil
}

// SameSite rejects requests that a page of another site sent and that may change something (any method but GET, HEAD
// and OPTIONS). The browser adds its visitor's cookies and network, and needs no permission for a POST without a body.
// Origins that may read answers by the CORS settings pass; allowed may be nil.
func SameSite(allowed *Origins, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if crossOrigin.Check(r) != nil && (allowed == nil || origin == "" || !allowed.allows(origin, r)) {
			http.Error(w, OtherSite, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// OtherSite is the answer to a rejected request.
const OtherSite = "a page of another site sent this request; open a page of this server, " +
	"or name the origin in hadoop.http.cross-origin.allowed-origins"
