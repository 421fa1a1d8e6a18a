// SPDX-License-Identifier: Apache-2.0

package dash_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// The offer and the measured use of a node that lends are on its page, in the router's list, and in its member's.
func TestNodePageShowsItsOffer(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1})
	id := creel.NodeID{Host: "lends", Port: 1}
	if err := f.Members[0].D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
		order := &rm.RegisterNode{
			ID: id, HTTPPort: 8042, Resource: creel.NewResource(4096, 4),
			Overallocation: rm.Overallocation{Memory: 0.75, CPU: 0.5},
		}
		if _, err := m.RegisterNode(now, order); err != nil {
			t.Error(err)
		}
		m.NodeHeartbeat(now, &rm.NodeReport{ID: id, Utilization: &rm.NodeUse{
			ContainersPhysicalMB: 1024, ContainersCPU: 1.5, PeakMB: 2048, PeakCPU: 2.5,
		}})
	}); err != nil {
		t.Fatal(err)
	}
	want := subcluster.NodeLine{MeasuredMB: 1024, MeasuredVCores: 1.5, Overallocation: subcluster.Overallocation{
		Memory: 0.75, CPU: 0.5, PredictedMB: 2048, PredictedVCores: 2.5,
	}}
	for _, at := range []string{f.Routers[0].Web, f.Members[0].WebAddress} {
		f.Until("the list of "+at+" has the node", func() bool {
			resp, body := get(t, "http://"+at+"/api/v1/nodes?user.name=root")
			var doc rest.NodesDoc
			if err := json.Unmarshal([]byte(body), &doc); resp.StatusCode != http.StatusOK || err != nil {
				t.Fatalf("%s %s: %v", resp.Status, body, err)
			}
			for _, n := range doc.Nodes {
				got := subcluster.NodeLine{
					MeasuredMB: n.MeasuredMB, MeasuredVCores: n.MeasuredVCores, Overallocation: n.Overallocation,
				}
				if n.ID == id.String() {
					return got == want
				}
			}
			return false
		})
	}
	_, body := get(t, "http://"+f.Routers[0].Web+"/nodes/"+id.String())
	for _, part := range []string{
		"1.5 vCores", "up to a use of 75.0% of memory and 50.0% of vCores; it predicts a peak of", "2.5 vCores",
	} {
		if !strings.Contains(body, part) {
			t.Errorf("no %q in\n%s", part, body)
		}
	}
}
