// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// A container never fits only if each member with known nodes has no node for it, or a lower limit of the queue.
func TestFitComparesNodesAndQueueLimits(t *testing.T) {
	limit := creel.NewResource(2048, 8)
	member := func(id creel.SubclusterID, most *creel.Resource, more ...subcluster.QueueLoad) subcluster.Status {
		return subcluster.Status{
			Member: subcluster.Member{ID: id}, State: subcluster.StateActive,
			Load: subcluster.Load{Queues: append([]subcluster.QueueLoad{{Queue: "root.a", Most: most}}, more...)},
		}
	}
	node := func(at creel.SubclusterID, mb, cores int64) *NodeRow {
		return &NodeRow{Member: at, NodeLine: subcluster.NodeLine{State: "RUNNING", FreeMB: mb, FreeVCores: cores}}
	}
	east, west := member("east", nil), member("west", &limit)
	nodes := []*NodeRow{node("east", 1024, 16), node("east", 512, 32), node("west", 8192, 4)}
	labelled := member("west", &limit, subcluster.QueueLoad{Queue: "root.a", Label: "gpu"})
	silent := east
	silent.State = subcluster.StateLost
	for name, x := range map[string]struct {
		members []subcluster.Status
		nodes   []*NodeRow
		ask     Size
		lacking bool
		fits    bool
	}{
		"east has a node":         {[]subcluster.Status{east, west}, nodes, Size{1024, 1}, false, true},
		"west has a node":         {[]subcluster.Status{east, west}, nodes, Size{2048, 4}, false, true},
		"above west's limit":      {[]subcluster.Status{east, west}, nodes, Size{2049, 1}, false, false},
		"no node has both":        {[]subcluster.Status{east}, nodes, Size{1024, 17}, false, false},
		"a member's is unknown":   {[]subcluster.Status{east, west}, nodes[:2], Size{2049, 1}, false, true},
		"a list is incomplete":    {[]subcluster.Status{east, west}, nodes, Size{2049, 1}, true, true},
		"without a lost member":   {[]subcluster.Status{silent, west}, nodes, Size{2049, 1}, false, false},
		"nodes with a label":      {[]subcluster.Status{labelled}, nodes, Size{2049, 1}, false, true},
		"no member has the queue": {nil, nodes, Size{1 << 20, 1}, false, true},
	} {
		view := subcluster.NewView(time.Now(), x.members, nil)
		for _, queue := range []creel.QueuePath{"root.a", "a"} {
			if doc := fitOf(view, queue, x.ask, x.nodes, x.lacking); doc.Fits != x.fits {
				t.Errorf("%s, %s: %+v", name, queue, doc)
			}
		}
	}
}
