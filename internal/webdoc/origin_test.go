// SPDX-License-Identifier: Apache-2.0

package webdoc

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"
)

func TestOriginHasSchemeOfCall(t *testing.T) {
	for secure, want := range map[bool]string{false: "http://here:1", true: "https://here:1"} {
		r := httptest.NewRequest("GET", "/ws", nil)
		r.Host, r.TLS = "here:1", nil
		if secure {
			r.TLS = &tls.ConnectionState{}
		}
		if got := Origin(r); got != want {
			t.Errorf("TLS is %v: %s", secure, got)
		}
	}
}
