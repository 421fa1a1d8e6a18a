// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// The ResourceManager was stopped for longer than nodes and AMs may be silent. It expires none of them for that, and
// still detects silent ones afterwards.
func TestOwnPauseExpiresNoNodesOrAMs(t *testing.T) {
	const expiry = 10 * time.Second
	w := newWorld(t, func(c *Config) { c.NodeExpiry, c.AMExpiry, c.ContainerExpiry = expiry, expiry, expiry })
	node := creel.NodeID{Host: "n", Port: 1}
	register := &RegisterNode{ID: node, Resource: creel.NewResource(8192, 8)}
	if _, err := w.m.RegisterNode(w.now, register); err != nil {
		t.Fatal(err)
	}
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	attempt := creel.AttemptID{Application: id, Attempt: 1}
	if err := w.m.Submit(w.now, &Submission{ID: id, User: "u", Queue: "default", Unmanaged: true}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if _, err := w.m.RegisterAM(w.now, &RegisterAM{Attempt: attempt}); err != nil {
		t.Fatal(err)
	}
	ask := Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1, AllocationRequestID: -1}
	answer, err := w.m.Allocate(w.now, attempt, &AllocateRequest{Asks: []Ask{ask}})
	if err != nil || len(answer.Granted) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	state := func() (creel.NodeState, creel.ApplicationState, int) {
		n, _ := w.m.Node(node)
		a, _ := w.m.App(id)
		return n.State, a.State, int(a.Containers)
	}

	w.now = w.now.Add(expiry / 2) // half of their time is over when the pause begins
	w.m.Tick(w.now)
	w.now = w.now.Add(3 * expiry)
	w.m.Paused(w.now, 3*expiry)
	w.m.Tick(w.now)
	if n, a, c := state(); n != creel.NodeRunning || a != creel.AppRunning || c != 1 {
		t.Fatalf("after the pause: node %v, application %v, %d containers", n, a, c)
	}
	w.now = w.now.Add(expiry/2 - time.Second)
	w.m.Tick(w.now)
	if n, a, c := state(); n != creel.NodeRunning || a != creel.AppRunning || c != 1 {
		t.Fatalf("before the other half is over: node %v, application %v, %d containers", n, a, c)
	}
	w.now = w.now.Add(2 * time.Second)
	w.m.Tick(w.now)
	if n, a, _ := state(); n != creel.NodeLost || a == creel.AppRunning {
		t.Fatalf("who stays silent is lost all the same: node %v, application %v", n, a)
	}
}
