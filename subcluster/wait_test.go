// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"slices"
	"testing"
)

func TestBindingUnitsOfALimit(t *testing.T) {
	for name, c := range map[string]struct {
		limit, used, needs Amounts
		want               []string
	}{
		"memory alone": {
			Amounts{"memory-mb": 4096, "vcores": 100}, Amounts{"memory-mb": 4000, "vcores": 4}, Amounts{"memory-mb": 1024, "vcores": 1},
			[]string{"memory-mb"},
		},
		"both": {
			Amounts{"memory-mb": 4096, "vcores": 4}, Amounts{"memory-mb": 4096, "vcores": 4}, Amounts{"memory-mb": 1024, "vcores": 1},
			[]string{"memory-mb", "vcores"},
		},
		"a type that is not asked for": {
			Amounts{"gpu": 0, "memory-mb": 4096}, Amounts{"memory-mb": 4096}, Amounts{"memory-mb": 1}, []string{"memory-mb"},
		},
		"exactly filled": {Amounts{"memory-mb": 4096}, Amounts{"memory-mb": 3072}, Amounts{"memory-mb": 1024}, nil},
		"applications":   {Amounts{Applications: 3}, Amounts{Applications: 4}, nil, []string{Applications}},
		"no limit":       {nil, Amounts{"memory-mb": 4096}, Amounts{"memory-mb": 1024}, nil},
	} {
		w := Wait{Limit: c.limit, Used: c.used, Needs: c.needs}
		if got := w.Binding(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSentenceNamesNodesWithLongestWaits(t *testing.T) {
	o := Opportunistic{Containers: 9}
	if got := o.Sentence(); got != "9 opportunistic containers." {
		t.Error(got)
	}
	o.Asked, o.Waiting, o.NodesWaiting = 2, 7, 5
	for _, node := range []string{"a:1", "b:1", "c:1", "d:1"} {
		o.Nodes = append(o.Nodes, NodeWait{node, 1, 40.4})
	}
	o.Nodes[0].Waiting = 3
	const want = "9 opportunistic containers and 2 more asked for; 7 of them wait in queues: " +
		"3 at a:1 for up to 40 s, 1 at b:1 for up to 40 s, 1 at c:1 for up to 40 s, others at 2 more nodes."
	if got := o.Sentence(); got != want {
		t.Error(got)
	}
}
