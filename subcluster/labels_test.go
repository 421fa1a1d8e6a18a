// SPDX-License-Identifier: Apache-2.0

package subcluster_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Published labels survive writing and reading; no labels differs from unknown ones.
func TestLabelsArePublishedWithTheLoad(t *testing.T) {
	gpu := subcluster.Partition{
		Label: "gpu", Shared: true, Total: creel.NewResource(4096, 4).With("yarn.io/gpu", 2),
		Used: creel.NewResource(1024, 1), Pending: creel.NewResource(512, 1),
	}
	var full subcluster.Labels
	full.Known, full.AMs = true, "gpu"
	full.Put(subcluster.Partition{Label: "ssd"})
	full.Put(subcluster.Partition{Label: "gpu"})
	full.Put(gpu)
	full.Add("root", []string{"*"}, "")
	full.Add("root.a", []string{"gpu"}, "gpu")
	full.Add("root.a.b", []string{"gpu"}, "gpu")
	full.Add("root.a.c", nil, "")
	for name, labels := range map[string]subcluster.Labels{
		"says nothing": {}, "has none": {Known: true}, "has some": full,
	} {
		load := subcluster.Load{Labels: labels}
		text, err := load.JSON()
		if err != nil {
			t.Fatal(err)
		}
		read, err := subcluster.ParseLoad(text)
		if err != nil || !reflect.DeepEqual(read.Labels, labels) {
			t.Errorf("%s: %+v (%v), written was %+v", name, read.Labels, err, labels)
		}
	}
	if len(full.Queues) != 2 {
		t.Errorf("rules that say what the queue above says are published: %+v", full.Queues)
	}
	if p := full.Find("gpu"); p == nil || !p.Free().Equal(creel.NewResource(3072, 3).With("yarn.io/gpu", 2)) {
		t.Errorf("the partition of gpu is %+v", p)
	}
	for _, c := range []struct {
		queue     creel.QueuePath
		byDefault string
		gpu, ssd  bool
	}{
		{"root", "", true, true},
		{"root.other", "", true, true},
		{"root.a", "gpu", true, false},
		{"root.a.b.on.demand", "gpu", true, false},
		{"root.a.c", "", false, false},
	} {
		if d, g, s := full.Default(c.queue), full.May(c.queue, "gpu"), full.May(c.queue, "ssd"); d != c.byDefault ||
			g != c.gpu || s != c.ssd || !full.May(c.queue, "") {
			t.Errorf("%s: default %q, gpu %v, ssd %v; want %+v", c.queue, d, g, s, c)
		}
	}
	for _, bad := range []string{
		`{"partitions":[{"label":""}]}`,
		`{"partitions":[{"label":"` + strings.Repeat("x", 256) + `"}]}`,
		`{"partitions":[` + strings.Repeat(`{"label":"x"},`, 1000) + `{"label":"y"}]}`,
		`{"queues":[{"queue":"a..b"}]}`,
	} {
		if l, err := subcluster.ParseLoad([]byte(`{"clusterMetrics":{},"creel":{"labels":` + bad + `}}`)); err == nil {
			t.Errorf("%.60s: read as %+v", bad, l.Labels)
		}
	}
}
