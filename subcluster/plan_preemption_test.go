// SPDX-License-Identifier: Apache-2.0

package subcluster_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// A member's preemption counts are published with its load, also in the head of one that is read in part.
func TestPreemptionIsPublishedWithLoad(t *testing.T) {
	want := []subcluster.PreemptionSpent{
		{Queue: "root.a", Begins: time.Unix(60, 0).UTC(), Taken: creel.NewResource(1024, 1).With("yarn.io/gpu", 2)},
		{Queue: "root.b", Label: "gpu", Begins: time.Unix(90, 0).UTC(), Unbound: true},
	}
	load := subcluster.Load{Preempted: want}
	text, err := load.JSON()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := subcluster.Cut(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{text, parts[0].Text} {
		if read, err := subcluster.ParseLoad(data); err != nil || !reflect.DeepEqual(read.Preempted, want) {
			t.Errorf("%s is read as %+v (%v)", data, read.Preempted, err)
		}
	}
	if _, err := subcluster.ParseLoad([]byte(`{"clusterMetrics":{},"creel":{"preempted":[{"queue":".."}]}}`)); err == nil {
		t.Error("a queue without a name is believed")
	}
}
