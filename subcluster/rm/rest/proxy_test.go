// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/creelrm/creel"
)

// Where an AM sends a browser to a page of its own, the browser comes back to the proxy.
func TestAMRedirectsReturnToProxy(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	const base = "/proxy/application_1_0007"
	for _, c := range []struct{ page, location, want string }{
		{"http://am:1", "/jobs?x=1#top", base + "/jobs?x=1#top"},
		{"http://am:1", "http://am:1/jobs", base + "/jobs"},
		{"http://am:1/", "http://am:1", base + "/"},
		{"http://am:1", base + "/mapreduce", base + "/mapreduce"}, // it knows of the proxy
		{"http://am:1/ui", "/ui/jobs", base + "/jobs"},
		{"http://am:1/ui", "/a%2Fb", "/a%2Fb"}, // not below its page: the proxy does not serve it
		{"http://am:1/ui", "/ui/a%2Fb", base + "/a%2Fb"},
		{"http://am:1", "http://history:19888/job", "http://history:19888/job"},
		{"http://am:1", "https://am:1/jobs", "https://am:1/jobs"},
		{"http://am:1", "::", "::"},
	} {
		target, err := url.Parse(c.page)
		if err != nil {
			t.Fatal(err)
		}
		if got := throughProxy(c.location, target, id); got != c.want {
			t.Errorf("the AM at %s sends to %s: the browser goes to %s, want %s", c.page, c.location, got, c.want)
		}
	}
}

// A name may resolve to another address after the check of its addresses.
func TestPinnedFetchRefusesAnotherAddress(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	for _, c := range []struct {
		pinned  string
		fetched bool
	}{{"127.0.0.1", true}, {"127.0.0.2", false}} {
		ams := newAMs(0)
		defer ams.CloseIdleConnections()
		ctx := pinned(t.Context(), []netip.Addr{netip.MustParseAddr(c.pinned)})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, page.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := ams.RoundTrip(r)
		if err == nil {
			res.Body.Close()
		}
		if (err == nil) != c.fetched {
			t.Errorf("fetched from 127.0.0.1, pinned to %s: %v", c.pinned, err)
		}
	}
}
