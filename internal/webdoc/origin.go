// SPDX-License-Identifier: Apache-2.0

package webdoc

import "net/http"

// Scheme is http or https, by which the client called this server.
func Scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// Origin is the scheme, host and port of this server, as the client named it, for links in documents.
func Origin(r *http.Request) string { return Scheme(r) + "://" + r.Host }
