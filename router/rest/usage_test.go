// SPDX-License-Identifier: Apache-2.0

package rest

import "testing"

// A percentage of a member becomes one of the federation; other values stay.
func TestAnApplicationsUsageIsOfTheFederation(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{`{"id":"a","clusterUsagePercentage":50.0,"x":1}`, `{"id":"a","clusterUsagePercentage":12.5,"x":1}`},
		{`{"queueUsagePercentage":10}`, `{"queueUsagePercentage":2.5}`},
		{`{"queueUsagePercentage":0.0,"clusterUsagePercentage":-1}`, `{"queueUsagePercentage":0.0,"clusterUsagePercentage":-1}`},
		{`{"clusterUsagePercentage":50,"aUsagePercentage":4,"queueUsagePercentage":8.0}`,
			`{"clusterUsagePercentage":12.5,"aUsagePercentage":4,"queueUsagePercentage":2.0}`},
		{`{"queueUsagePercentage":8.0,"of":{"queueUsagePercentage":8.0},"clusterUsagePercentage":50}`,
			`{"queueUsagePercentage":2.0,"of":{"queueUsagePercentage":8.0},"clusterUsagePercentage":12.5}`},
		{`<app><queueUsagePercentage>10.0</queueUsagePercentage></app>`, `<app><queueUsagePercentage>2.5</queueUsagePercentage></app>`},
		{`{"name":"\"clusterUsagePercentage\":50"}`, `{"name":"\"clusterUsagePercentage\":50"}`},
		{`{"clusterUsagePercentage":`, `{"clusterUsagePercentage":`},
		{``, ``},
	} {
		if got := string(ofFederation([]byte(c.doc), 0.25)); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.doc, got, c.want)
		}
	}
}
